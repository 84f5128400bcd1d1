# SPDX-License-Identifier: Apache-2.0
#
# The optional tokenizer for tokenizer.json files: the Rust crate in src/live/hf_tokenizer, built by
# cargo as a static library inside the build folder. Without the option the folder's C++ is left
# out, and tokenizer_file_absent.cc refuses such files.

# Leaves out of the module's sources what this build has no use for.
macro(dyno_choose_tokenizer_sources variable)
  if(DYNO_HF_TOKENIZER)
    list(FILTER ${variable} EXCLUDE REGEX "/live/tokenizer_file_absent\\.cc$")
  else()
    list(FILTER ${variable} EXCLUDE REGEX "/live/hf_tokenizer/")
  endif()
endmacro()

# The target dyno_hf_tokenizer, for DYNO_LIBS_live.
function(dyno_add_hf_tokenizer)
  set(crate ${PROJECT_SOURCE_DIR}/src/live/hf_tokenizer)
  file(STRINGS ${crate}/Cargo.toml needed REGEX "^rust-version = ")
  string(REGEX MATCH "[0-9.]+" needed "${needed}")
  find_program(CARGO cargo HINTS $ENV{HOME}/.cargo/bin)
  set(found none)
  if(CARGO)
    execute_process(COMMAND ${CARGO} --version OUTPUT_VARIABLE found ERROR_QUIET)
    string(REGEX MATCH "[0-9]+\\.[0-9.]+" found "${found}")
  endif()
  if(NOT found VERSION_GREATER_EQUAL needed)
    message(FATAL_ERROR "DYNO_HF_TOKENIZER needs cargo ${needed} or newer, found: ${found} "
      "(scripts/bootstrap tokenizers installs it)")
  endif()
  set(folder ${PROJECT_BINARY_DIR}/hf_tokenizer)
  set(library ${folder}/release/libdyno_hf_tokenizer.a)
  add_custom_command(
    OUTPUT ${library}
    COMMAND ${CARGO} build --release --locked --quiet
      --manifest-path ${crate}/Cargo.toml --target-dir ${folder}
    # cargo leaves a library alone that is new enough.
    COMMAND ${CMAKE_COMMAND} -E touch ${library}
    DEPENDS ${crate}/Cargo.toml ${crate}/Cargo.lock ${crate}/lib.rs
    COMMENT "Building the tokenizers crate with cargo"
    VERBATIM)
  add_custom_target(dyno_hf_tokenizer_crate DEPENDS ${library})
  add_library(dyno_hf_tokenizer STATIC IMPORTED GLOBAL)
  set_target_properties(dyno_hf_tokenizer PROPERTIES IMPORTED_LOCATION ${library}
    INTERFACE_LINK_LIBRARIES "Threads::Threads;${CMAKE_DL_LIBS};m")
  add_dependencies(dyno_hf_tokenizer dyno_hf_tokenizer_crate)
endfunction()
