# SPDX-License-Identifier: Apache-2.0
#
# Script: writes a C++ file that holds other files as bytes.
# cmake -DOUTPUT=x.cc -DHEADER=report/page_assets.h -DNAMESPACE=dynosim::report
#   -DFUNCTION=PageAsset -DFILES="a;b" -P embed.cmake
set(arrays "")
set(cases "")
set(index 0)
foreach(file IN LISTS FILES)
  file(READ ${file} bytes HEX)
  string(REGEX REPLACE "(..)" "'\\\\x\\1'," bytes "${bytes}")
  get_filename_component(name ${file} NAME)
  string(APPEND arrays "constexpr char kFile${index}[] = {${bytes}};\n")
  string(APPEND cases
    "  if (name == \"${name}\") {\n    return {kFile${index}, sizeof(kFile${index})};\n  }\n")
  math(EXPR index "${index} + 1")
endforeach()
file(WRITE ${OUTPUT}
"// Written by cmake/embed.cmake.
#include \"${HEADER}\"

#include <string_view>

#include \"base/check.h\"

namespace ${NAMESPACE} {
namespace {
${arrays}}  // namespace

std::string_view ${FUNCTION}(std::string_view name) {
${cases}  DYNO_CHECK(false);
  return {};
}

}  // namespace ${NAMESPACE}
")
