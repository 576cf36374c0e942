# The one place for floating-point flags. Every samebits object is compiled with them: g++ contracts
# a*b+c across statements by default, which would change bits. tools/check_flags.py proves from
# compile_commands.json that no object lacks them.
add_library(sb_strict_fp INTERFACE)
target_compile_options(sb_strict_fp INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off -fno-fast-math -fno-unsafe-math-optimizations>)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  # The floor on x86; wider kernels live in files of their own and are chosen at run time.
  target_compile_options(sb_strict_fp INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-march=x86-64-v3>)
endif()

set(SB_SANITIZE "" CACHE STRING "address,undefined | thread | empty")

add_library(sb_warnings INTERFACE)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 sees overlaps in std::string + std::string that are not there.
  target_compile_options(sb_warnings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()
target_compile_options(sb_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wno-unknown-pragmas
    -Wno-missing-field-initializers>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT SB_SANITIZE STREQUAL "")
  # GCC 12 reports false positives of these under sanitizers and deep inlining.
  target_compile_options(sb_warnings INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Wno-maybe-uninitialized -Wno-array-bounds -Wno-stringop-overflow>)
endif()

add_library(sb_sanitize INTERFACE)
if(SB_SANITIZE)
  target_compile_options(sb_sanitize INTERFACE -fsanitize=${SB_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  target_link_options(sb_sanitize INTERFACE -fsanitize=${SB_SANITIZE})
endif()
option(SB_COVERAGE "Instrument for gcov" OFF)
if(SB_COVERAGE)
  target_compile_options(sb_sanitize INTERFACE --coverage -O1)
  target_link_options(sb_sanitize INTERFACE --coverage)
endif()
