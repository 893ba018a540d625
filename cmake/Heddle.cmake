# Where a preset says so, HEDDLE_BATCH sources at most share a file (cmake/batches.py): in those with tests, arm64 too, whose
# programs are shipped. The release is compiled source by source. Which of the two it is changes nothing of what a program does.
# A source that changes is looked at again: its names may have, too.
if(HEDDLE_BATCH GREATER 1)
  find_program(PYTHON python3 REQUIRED)
  execute_process(COMMAND ${PYTHON} ${CMAKE_SOURCE_DIR}/cmake/batches.py ${CMAKE_BINARY_DIR}/batches ${HEDDLE_BATCH}
                  COMMAND_ERROR_IS_FATAL ANY)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/cmake/batches.py)
  include(${CMAKE_BINARY_DIR}/batches/batches.cmake)
endif()

# VAR: the sources as they are to be compiled.
function(heddle_batches VAR)
  set(FILES "")
  foreach(SOURCE ${ARGN})
    file(RELATIVE_PATH NAME ${CMAKE_SOURCE_DIR} ${SOURCE})
    if(BATCH_${NAME})
      set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${SOURCE})
      list(APPEND FILES ${BATCH_${NAME}})
    else()
      list(APPEND FILES ${SOURCE})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES FILES)
  set(${VAR} ${FILES} PARENT_SCOPE)
endfunction()

# One folder is one library. A folder's main.cc is its binary and nothing else: all that can be tested is in the library.
#   heddle_library(placement DEPS heddle_topology PRIVATE simdjson::simdjson)
# OWN_FLAGS: it is compiled for another processor than the rest, so it cannot share their precompiled header.
function(heddle_library NAME)
  cmake_parse_arguments(ARG "OWN_FLAGS" "" "DEPS;PRIVATE" ${ARGN})
  file(GLOB_RECURSE SOURCES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${NAME}/*.cc)
  list(FILTER SOURCES EXCLUDE REGEX "/main\\.cc$")
  if(SOURCES)
    heddle_batches(SOURCES ${SOURCES})
    add_library(heddle_${NAME} STATIC ${SOURCES})
    target_link_libraries(heddle_${NAME} PUBLIC heddle_options ${ARG_DEPS} PRIVATE ${ARG_PRIVATE})
    if(NOT ARG_OWN_FLAGS)
      heddle_precompiled(heddle_${NAME})
    endif()
  else()
    add_library(heddle_${NAME} INTERFACE)
    target_link_libraries(heddle_${NAME} INTERFACE heddle_options ${ARG_DEPS})
  endif()
endfunction()

function(heddle_binary NAME FOLDER)
  if(EXISTS ${CMAKE_SOURCE_DIR}/${FOLDER}/main.cc)
    add_executable(${NAME} ${CMAKE_SOURCE_DIR}/${FOLDER}/main.cc)
    target_link_libraries(${NAME} PRIVATE heddle_${FOLDER} CLI11::CLI11 spdlog::spdlog)
  endif()
endfunction()

# tests/unit/<folder>/*.cc become one test binary. It runs from the top of the tree, so that no path of this machine is in it.
function(heddle_unit_tests NAME)
  cmake_parse_arguments(ARG "" "" "DEPS" ${ARGN})
  file(GLOB_RECURSE SOURCES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/unit/${NAME}/*.cc)
  if(NOT SOURCES)
    return()
  endif()
  heddle_batches(SOURCES ${SOURCES})
  add_executable(${NAME}_test ${SOURCES})
  target_link_libraries(${NAME}_test PRIVATE heddle_${NAME} heddle_test_support GTest::gmock GTest::gtest_main ${ARG_DEPS})
  heddle_precompiled(${NAME}_test)
  # For what the rooms of a folder share: "recorded_machine.h".
  target_include_directories(${NAME}_test PRIVATE ${CMAKE_SOURCE_DIR}/tests/unit/${NAME})
  target_compile_definitions(${NAME}_test PRIVATE HEDDLE_SOURCE_DIR=".")
  add_test(NAME ${NAME} COMMAND ${NAME}_test --gtest_brief=1 WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(${NAME} PROPERTIES TIMEOUT 1200)
endfunction()

# A library of the messages and services of one .proto, for #include "<its folder>/<its name>.grpc.pb.h".
function(heddle_grpc NAME PROTO)
  find_program(PROTOC protoc REQUIRED)
  find_program(GRPC_CPP_PLUGIN grpc_cpp_plugin REQUIRED)
  set(OUT ${CMAKE_BINARY_DIR}/generated)
  string(REGEX REPLACE "\\.proto$" "" STEM ${PROTO})
  set(MADE ${OUT}/${STEM}.pb.cc ${OUT}/${STEM}.grpc.pb.cc)
  add_custom_command(
    OUTPUT ${MADE} ${OUT}/${STEM}.pb.h ${OUT}/${STEM}.grpc.pb.h
    COMMAND ${CMAKE_COMMAND} -E make_directory ${OUT}
    COMMAND ${PROTOC} -I ${CMAKE_SOURCE_DIR} --cpp_out=${OUT} --grpc_out=${OUT}
            --plugin=protoc-gen-grpc=${GRPC_CPP_PLUGIN} ${PROTO}
    WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} DEPENDS ${CMAKE_SOURCE_DIR}/${PROTO} VERBATIM)
  add_library(${NAME} STATIC ${MADE})
  # SYSTEM: what protoc writes does not follow our warnings.
  target_include_directories(${NAME} SYSTEM PUBLIC ${OUT})
  target_link_libraries(${NAME} PUBLIC PkgConfig::GRPC)
endfunction()

# The text of crds/*.yaml as a source of TARGET, cli/known_crds.h: what a program of this version expects of a cluster.
function(heddle_known_crds TARGET)
  file(GLOB FILES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/crds/*.yaml)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${FILES})
  set(TEXTS "")
  foreach(FILE ${FILES})
    file(READ ${FILE} TEXT)
    string(APPEND TEXTS "    R\"heddle(${TEXT})heddle\",\n")
  endforeach()
  list(LENGTH FILES COUNT)
  set(OUT ${CMAKE_BINARY_DIR}/generated/cli/known_crds.cc)
  file(CONFIGURE OUTPUT ${OUT} @ONLY CONTENT [=[
#include "cli/known_crds.h"

#include <array>

namespace heddle::cli {

std::span<const std::string_view> KnownCrdTexts() {
  static constexpr std::array<std::string_view, @COUNT@> kTexts{
@TEXTS@  };
  return kTexts;
}

}  // namespace heddle::cli
]=])
  target_sources(${TARGET} PRIVATE ${OUT})
endfunction()

# The files of a folder as a C++ file of a library, made anew when one of them changes.
function(heddle_embed NAME FOLDER)
  file(GLOB FILES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${FOLDER}/*)
  set(OUT ${CMAKE_BINARY_DIR}/generated/${FOLDER}_files.cc)
  get_filename_component(OUT_FOLDER ${OUT} DIRECTORY)
  file(MAKE_DIRECTORY ${OUT_FOLDER})
  add_custom_command(
    OUTPUT ${OUT}
    COMMAND ${CMAKE_COMMAND} -D FOLDER=${CMAKE_SOURCE_DIR}/${FOLDER} -D OUT=${OUT} -P ${CMAKE_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${FILES} ${CMAKE_SOURCE_DIR}/cmake/embed.cmake VERBATIM)
  target_sources(heddle_${NAME} PRIVATE ${OUT})
endfunction()
