# One precompiled header for all that clang compiles, which is what tests run: a test takes a quarter of the time, a
# library two thirds. (gcc would gain a tenth.) Not by target_precompile_headers: ccache would take the header's own
# bytes into account, which name this folder, and another clone of the same commit would find nothing compiled. Beside
# the header lies a sum of the text that it was made from, and ccache goes by that.
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  function(heddle_precompiled TARGET)
  endfunction()
  return()
endif()

set(HEDDLE_PCH ${CMAKE_BINARY_DIR}/precompiled.pch)
string(TOUPPER "${CMAKE_BUILD_TYPE}" BUILD_TYPE)
separate_arguments(PCH_FLAGS UNIX_COMMAND "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${BUILD_TYPE}}")
get_directory_property(PCH_OPTIONS COMPILE_OPTIONS)
list(APPEND PCH_FLAGS ${PCH_OPTIONS} -std=c++20 -D_GLIBCXX_ASSERTIONS -DFMT_SHARED -DGTEST_HAS_PTHREAD=1)
add_custom_command(
  OUTPUT ${HEDDLE_PCH}
  COMMAND ${CMAKE_CXX_COMPILER} ${PCH_FLAGS} -x c++-header ${CMAKE_SOURCE_DIR}/cmake/precompiled.h
          -Xclang -fno-pch-timestamp -fpch-instantiate-templates -o ${HEDDLE_PCH}
  # Its name is an argument too: within the line of shell a blank in a folder's name would end it.
  COMMAND sh -c "sum=$1 && shift && \"$@\" | sha256sum > \"$sum\"" sh ${HEDDLE_PCH}.sum
          ${CMAKE_CXX_COMPILER} ${PCH_FLAGS} -x c++-header ${CMAKE_SOURCE_DIR}/cmake/precompiled.h -E -P
  DEPENDS ${CMAKE_SOURCE_DIR}/cmake/precompiled.h VERBATIM)
add_custom_target(heddle_pch DEPENDS ${HEDDLE_PCH})

# Not for a target with compile options of its own that change what a header means.
function(heddle_precompiled TARGET)
  add_dependencies(${TARGET} heddle_pch)
  target_compile_options(${TARGET} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-include-pch> $<$<COMPILE_LANGUAGE:CXX>:${HEDDLE_PCH}>)
  get_target_property(SOURCES ${TARGET} SOURCES)
  set_property(SOURCE ${SOURCES} APPEND PROPERTY OBJECT_DEPENDS ${HEDDLE_PCH})
endfunction()
