# SPDX-License-Identifier: Apache-2.0
#
# Turns folders into targets: src/<module> into dynosim_<module> and <module>_test, src/cli/main.cc
# into the program, tests/ into dynosim_tests, bench/ and fuzz/ into one program per file.

# Adds a GoogleTest program whose tests run from the source directory and carry the label.
function(dyno_add_test_program name label)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE GTest::gtest_main rapidcheck_gtest)
  target_compile_definitions(${name} PRIVATE DYNO_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  gtest_discover_tests(${name}
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
    DISCOVERY_MODE PRE_TEST
    PROPERTIES LABELS ${label} TIMEOUT 300)
endfunction()

# Adds every module whose folder exists; each links the ones before it. Sets DYNO_TARGETS.
function(dyno_add_modules)
  foreach(module IN LISTS DYNO_MODULES)
    if(NOT module IN_LIST ARGN)
      message(FATAL_ERROR "DYNO_MODULES: '${module}' is not one of: ${ARGN}")
    endif()
  endforeach()
  # Watched, so that a new folder is noticed by the next build.
  file(GLOB folders CONFIGURE_DEPENDS LIST_DIRECTORIES true ${PROJECT_SOURCE_DIR}/src/*)
  set(leftward "")
  foreach(module IN LISTS ARGN)
    set(folder ${PROJECT_SOURCE_DIR}/src/${module})
    if(NOT folder IN_LIST folders OR (DYNO_MODULES AND NOT module IN_LIST DYNO_MODULES))
      continue()
    endif()
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${folder}/*.cc)
    dyno_choose_tokenizer_sources(sources)
    set(tests ${sources})
    list(FILTER tests INCLUDE REGEX "_test\\.cc$")
    list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
    list(FILTER sources EXCLUDE REGEX "/cli/main\\.cc$")
    # Every trace reader names its fields in the same words.
    set(readers ${sources})
    list(FILTER readers INCLUDE REGEX "/workload/traces/")
    set_source_files_properties(${readers} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)

    set(target dynosim_${module})
    if(sources)
      add_library(${target} STATIC ${sources})
      set(visibility PUBLIC)
    else()
      add_library(${target} INTERFACE)
      set(visibility INTERFACE)
    endif()
    target_include_directories(${target} ${visibility} ${PROJECT_SOURCE_DIR}/src)
    target_link_libraries(${target} ${visibility} ${leftward} ${DYNO_LIBS_${module}})
    # The nearest module first: the linker resolves archives from left to right.
    list(PREPEND leftward ${target})

    if(DYNO_TESTS AND tests)
      dyno_add_test_program(${module}_test ${module} ${tests})
      dyno_spare_optimisation(${module}_test)
      target_link_libraries(${module}_test PRIVATE ${target})
    endif()
  endforeach()
  set(DYNO_TARGETS ${leftward} PARENT_SCOPE)
endfunction()

# Puts files into a module: src/<module>/<header>.h declares std::string_view <function>(name).
function(dyno_embed_files target module function header)
  if(NOT TARGET ${target})
    return()
  endif()
  list(TRANSFORM ARGN PREPEND ${PROJECT_SOURCE_DIR}/ OUTPUT_VARIABLE files)
  set(output ${PROJECT_BINARY_DIR}/embedded/${header}.cc)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output} -DHEADER=${module}/${header}.h
      -DNAMESPACE=dynosim::${module} -DFUNCTION=${function} "-DFILES=${files}"
      -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${files} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    VERBATIM)
  target_sources(${target} PRIVATE ${output})
endfunction()

# The program: src/cli/main.cc and everything it needs.
function(dyno_add_program)
  file(GLOB main CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/cli/main.cc)
  if(TARGET dynosim_cli AND main)
    add_executable(dynosim ${main})
    target_link_libraries(dynosim PRIVATE dynosim_cli)
  endif()
endfunction()

# The extension module dynosim._core of the Python package, and the data that comes with it. A wheel
# holds what is installed; nanobind comes from the interpreter that builds it.
function(dyno_add_python_module)
  find_package(Python 3.9 REQUIRED COMPONENTS Interpreter Development.Module)
  execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir
    OUTPUT_STRIP_TRAILING_WHITESPACE OUTPUT_VARIABLE nanobind_ROOT COMMAND_ERROR_IS_FATAL ANY)
  find_package(nanobind CONFIG REQUIRED)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/python/*.cc)
  nanobind_add_module(_core NB_STATIC NOMINSIZE ${sources})
  target_link_libraries(_core PRIVATE dynosim_cli)
  # The sources and headers of nanobind and Python are not written for our warnings.
  target_compile_options(nanobind-static PRIVATE -w)
  target_include_directories(_core SYSTEM PRIVATE ${NB_DIR}/include ${Python_INCLUDE_DIRS})
  target_link_options(_core PRIVATE -Wl,--exclude-libs,ALL)
  install(TARGETS _core LIBRARY DESTINATION dynosim)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/data/perfdata DESTINATION dynosim/data)
endfunction()

# Tests that cross modules or run the program itself (its path is in DYNO_PROGRAM).
function(dyno_add_whole_program_tests)
  file(GLOB tests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/*.cc)
  if(NOT tests)
    return()
  endif()
  if(NOT TARGET dynosim)
    message(WARNING "tests/ is left out: it needs the program, and src/cli/main.cc is not in this build")
    return()
  endif()
  dyno_add_test_program(dynosim_tests whole ${tests})
  set_target_properties(dynosim_tests PROPERTIES UNITY_BUILD OFF)
  if(DYNO_SANITIZE)
    dyno_spare_optimisation(dynosim_tests)
  endif()
  target_link_libraries(dynosim_tests PRIVATE ${DYNO_TARGETS})
  target_compile_definitions(dynosim_tests PRIVATE DYNO_PROGRAM="$<TARGET_FILE:dynosim>")
  target_include_directories(dynosim_tests PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  add_dependencies(dynosim_tests dynosim)
endfunction()

# One program per file, linked with every module but the command line.
function(dyno_add_programs collection folder)
  file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.cc)
  set(modules ${DYNO_TARGETS})
  list(REMOVE_ITEM modules dynosim_cli)
  add_custom_target(${collection})
  foreach(file IN LISTS files)
    get_filename_component(name ${file} NAME_WE)
    add_executable(${name} EXCLUDE_FROM_ALL ${file})
    target_link_libraries(${name} PRIVATE ${modules} ${ARGN})
    add_dependencies(${collection} ${name})
  endforeach()
endfunction()

function(dyno_add_benchmarks)
  find_package(benchmark REQUIRED)
  dyno_add_programs(benchmarks bench benchmark::benchmark_main)
endfunction()

function(dyno_add_fuzzers)
  dyno_add_programs(fuzzers fuzz -fsanitize=fuzzer)
endfunction()
