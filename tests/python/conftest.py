# SPDX-License-Identifier: Apache-2.0
"""Shells start what runs in the background with interrupts ignored, and children inherit that."""
import signal

signal.signal(signal.SIGINT, signal.default_int_handler)
