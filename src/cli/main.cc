// SPDX-License-Identifier: Apache-2.0
// The program `dynosim`.
#include "cli/program.h"

int main(int argc, char** argv) { return dynosim::cli::RunProgram(argc, argv); }
