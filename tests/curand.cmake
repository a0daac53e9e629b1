# Philox against NVIDIA's own cuRAND, where its toolkit is: it runs without a GPU or driver. Elsewhere ctest lists the
# tests as skipped. The frozen vectors are compared with the script that wrote them where there is a Python.
find_path(CKPT_CURAND_INCLUDE curand_kernel.h PATHS ENV CUDA_PATH ENV CUDA_HOME /usr/local/cuda /opt/cuda
  PATH_SUFFIXES include)
find_library(CKPT_CURAND_LIBRARY curand PATHS ENV CUDA_PATH ENV CUDA_HOME /usr/local/cuda /opt/cuda PATH_SUFFIXES lib64 lib)
foreach(name curand curand_device curand_header)
  if(NOT TARGET unit_${name})
    continue()
  endif()
  if(CKPT_CURAND_INCLUDE AND CKPT_CURAND_LIBRARY)
    target_include_directories(unit_${name} SYSTEM PRIVATE ${CKPT_CURAND_INCLUDE})
    target_link_libraries(unit_${name} PRIVATE ${CKPT_CURAND_LIBRARY})
    target_compile_definitions(unit_${name} PRIVATE CKPT_HAS_CURAND)
  else()
    set_tests_properties(${CKPT_TEST_PREFIX}unit/${name} PROPERTIES SKIP_REGULAR_EXPRESSION "left out: no CUDA toolkit")
  endif()
endforeach()

find_package(Python3 COMPONENTS Interpreter QUIET)
if(Python3_FOUND AND TARGET unit_philox_vectors)
  add_test(NAME ${CKPT_TEST_PREFIX}unit/philox_vectors_script COMMAND ${Python3_EXECUTABLE}
    ${CMAKE_CURRENT_SOURCE_DIR}/vectors/make_philox.py --check ${CMAKE_CURRENT_SOURCE_DIR}/vectors/philox.txt)
  set_tests_properties(${CKPT_TEST_PREFIX}unit/philox_vectors_script PROPERTIES LABELS unit TIMEOUT 60)
endif()
