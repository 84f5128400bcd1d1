# SPDX-License-Identifier: Apache-2.0
#
# Third-party libraries, all from the distribution, and the module that uses each. Imported
# targets are system includes, so our warnings do not apply to their headers.
macro(dyno_require name)
  find_package(${name} ${ARGN} QUIET)
  if(NOT ${name}_FOUND)
    message(FATAL_ERROR "the library ${name} ${ARGN} is missing or too old: scripts/bootstrap installs it")
  endif()
endmacro()

dyno_require(Threads)
dyno_require(fmt 9)
dyno_require(nlohmann_json 3.11)
dyno_require(absl)
dyno_require(simdjson)
dyno_require(ZLIB)
dyno_require(zstd)
dyno_require(yaml-cpp)
dyno_require(Boost 1.74)
dyno_require(CLI11 2.1)
dyno_require(prometheus-cpp)
find_path(MSGPACK_INCLUDE_DIR msgpack.hpp REQUIRED)
find_path(CPPZMQ_INCLUDE_DIR zmq.hpp REQUIRED)
find_library(ZMQ_LIBRARY zmq REQUIRED)
find_path(XXHASH_INCLUDE_DIR xxhash.h REQUIRED)

# Libraries by module, visible to the modules to its right. xxhash is used inline, header only.
set(DYNO_LIBS_base fmt::fmt nlohmann_json::nlohmann_json absl::flat_hash_map absl::strings ZLIB::ZLIB zstd::libzstd_shared)
set(DYNO_LIBS_config yaml-cpp)
set(DYNO_LIBS_workload simdjson::simdjson)
set(DYNO_LIBS_kv Boost::headers)
set(DYNO_LIBS_search Threads::Threads)
set(DYNO_LIBS_live Threads::Threads prometheus-cpp::core ${ZMQ_LIBRARY})
set(DYNO_LIBS_cli CLI11::CLI11)

macro(dyno_find_test_libraries)
  find_package(GTest 1.12 REQUIRED)
  find_package(rapidcheck REQUIRED)
  include(GoogleTest)
endmacro()
