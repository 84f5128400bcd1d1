# SPDX-License-Identifier: Apache-2.0
#
# Flags of every target. Results are compared bit for bit, so nothing here may change floating
# point: no contraction to fused multiply-add, no fast-math, the x86-64 baseline.
add_compile_options(-ffp-contract=off -fno-plt)

add_compile_options(
  -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wold-style-cast -Wmissing-declarations
  -Wsuggest-override -Wswitch-enum)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-Wuseless-cast -Wduplicated-cond)
  # -Wnull-dereference stays off: under -O2 it reports impossible paths inside the library headers.
  # The static analyzer of clang-tidy looks for the same mistake.
  if(DYNO_SANITIZE OR CMAKE_UNITY_BUILD)
    # Inserted checks and more inlining make this one warn about impossible paths.
    add_compile_options(-Wno-maybe-uninitialized)
  endif()
  if(CMAKE_UNITY_BUILD)
    # Several files as one: a class of one of them may well hold a type of that file alone.
    add_compile_options(-Wno-subobject-linkage)
  endif()
else()
  # Part of -Wconversion in clang, not in g++.
  add_compile_options(-Wno-sign-conversion)
endif()
if(DYNO_WERROR)
  add_compile_options(-Werror)
endif()

if(DYNO_SANITIZE)
  list(JOIN DYNO_SANITIZE "," sanitizers)
  add_compile_options(-fsanitize=${sanitizers} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${sanitizers})
  add_compile_definitions(_GLIBCXX_ASSERTIONS DYNO_SANITIZED)
endif()
# Optimisation is half the time of a build. The tests themselves do without, and under the sanitizers
# also the modules that tests and fuzzing spend little time in.
function(dyno_spare_optimisation)
  foreach(target IN LISTS ARGN)
    if(TARGET ${target})
      target_compile_options(${target} PRIVATE -O0)
    endif()
  endforeach()
endfunction()
if(DYNO_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "DYNO_FUZZ needs clang 19 or later; use the preset 'fuzz'")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
