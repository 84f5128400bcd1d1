# SPDX-License-Identifier: Apache-2.0
"""Errors of the program in the words of Python."""
import re


def in_python(error):
    """The same error; it names arguments instead of flags."""
    text = re.sub(r"--([a-z][a-z0-9-]*)", lambda m: m.group(1).replace("-", "_"), str(error))
    return type(error)(text)


def call(function, *arguments):
    try:
        return function(*arguments)
    except (ValueError, RuntimeError) as error:
        raise in_python(error) from None
