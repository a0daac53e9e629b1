# The crates ckpt-sys and ckpt: `cargo test --offline`, without a registry.
if(CKPT_SANITIZE OR NOT TARGET ckpt_ops)
  return()
endif()
find_program(CKPT_CARGO cargo)
mark_as_advanced(CKPT_CARGO)
if(NOT CKPT_CARGO)
  message(STATUS "left out: the Rust crates' tests: no cargo")
  return()
endif()
set(environment "CKPT_LIB_DIR=$<TARGET_FILE_DIR:ckpt>:$<TARGET_FILE_DIR:ckpt_ops>" "CARGO_TARGET_DIR=${CMAKE_CURRENT_BINARY_DIR}/cargo"
  "CKPT_LAYOUTS=$<TARGET_FILE:bindings_layouts>")
if(CKPT_BUILD_EXAMPLES AND TARGET ckpt_ops)
  list(APPEND environment "CKPT_C_EXAMPLES=${CKPT_C_EXAMPLES}")
endif()
if(TARGET ckpt_cuda_sim)
  list(APPEND environment "CKPT_PLUGIN_PATH=$<TARGET_FILE_DIR:ckpt_cuda_sim>")
endif()
add_test(NAME ${CKPT_TEST_PREFIX}bindings/rust COMMAND ${CKPT_CARGO} test --offline WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}/bindings/rust)
# The core alone, as a user of its own kernels has it; and found by pkg-config.
add_test(NAME ${CKPT_TEST_PREFIX}bindings/rust_core COMMAND ${CKPT_CARGO} test --offline --no-default-features --test failures
  WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}/bindings/rust)
set_tests_properties(${CKPT_TEST_PREFIX}bindings/rust ${CKPT_TEST_PREFIX}bindings/rust_core PROPERTIES LABELS bindings TIMEOUT 1800 PROCESSORS 2
  RESOURCE_LOCK cargo ENVIRONMENT "${environment}")
find_program(CKPT_PKG_CONFIG pkg-config)
mark_as_advanced(CKPT_PKG_CONFIG)
if(CKPT_PKG_CONFIG)
  foreach(name ckpt ckpt_ops)
    file(GENERATE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/pc/${name}.pc CONTENT
      "Name: ${name}\nDescription: in the build folder\nVersion: ${PROJECT_VERSION}\nLibs: -L$<TARGET_FILE_DIR:${name}> -l${name}\n")
  endforeach()
  add_test(NAME ${CKPT_TEST_PREFIX}bindings/rust_pkg_config COMMAND ${CKPT_CARGO} test --offline --test failures
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}/bindings/rust)
  set_tests_properties(${CKPT_TEST_PREFIX}bindings/rust_pkg_config PROPERTIES LABELS bindings TIMEOUT 1800 RESOURCE_LOCK cargo
    ENVIRONMENT "PKG_CONFIG_PATH=${CMAKE_CURRENT_BINARY_DIR}/pc;CARGO_TARGET_DIR=${CMAKE_CURRENT_BINARY_DIR}/cargo_pc"
    ENVIRONMENT_MODIFICATION "CKPT_LIB_DIR=unset:")
endif()
