// The program as a function, so that commands can be run from within (samebits demo) as a person
// would type them.
#pragma once

#include <string>
#include <vector>

namespace sb {

// Parses and runs one command line; returns its exit code.
int run_program(int argc, char** argv);
// The same from words after the program's name.
int run_program(const std::vector<std::string>& args);

}  // namespace sb
