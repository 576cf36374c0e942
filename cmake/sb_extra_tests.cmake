# Tests that are not GoogleTest cases, and libraries that one test program alone needs.
if(SB_BUILD_TESTS)
  if(TARGET sb_arith_test)
    target_link_libraries(sb_arith_test PRIVATE mpfr gmp)
  endif()

  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  # Pages show what the program prints, whatever it was built with: once is enough.
  if(NOT SB_SANITIZE AND NOT SB_COVERAGE)
    add_test(NAME Docs.shellBlocksPrintWhatThePagesShow
      COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/check_docs_shell.py
        --program $<TARGET_FILE:samebits>)
  endif()
  set(portable ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/compile_portable.py)
  set(portable_work --work ${CMAKE_BINARY_DIR}/portable_compile)
  add_test(NAME PortableCompile.scan
    COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/scan_ptx_test.py)
  add_test(NAME PortableCompile.gxx COMMAND ${portable} gxx ${portable_work}/gxx)
  if(SB_COMPILE_CUDA)
    add_test(NAME PortableCompile.cuda COMMAND ${portable} cuda ${portable_work}/cuda)
    # A missing compiler is shown as a skipped test, never as a passed one.
    set_tests_properties(PortableCompile.cuda PROPERTIES SKIP_RETURN_CODE 77)
  endif()
  if(SB_CUDA_FOUND)
    file(GLOB tables RELATIVE ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/src/samebits/backend/cuda/*.cu)
    list(TRANSFORM tables REPLACE "(.+)" "${CMAKE_BINARY_DIR}/CMakeFiles/sb_backend.dir/\\1.o")
    add_test(NAME Kernels.codeForNvidiaIsClean
      COMMAND ${portable} kernels-cuda ${tables} ${portable_work}/kernels_cuda)
    set_tests_properties(Kernels.codeForNvidiaIsClean PROPERTIES SKIP_RETURN_CODE 77)
  endif()
  if(SB_COMPILE_HIP)
    add_test(NAME PortableCompile.hip COMMAND ${portable} hip ${portable_work}/hip)
    add_test(NAME Kernels.compileForAmd COMMAND ${portable} kernels-hip ${portable_work}/kernels)
    set_tests_properties(PortableCompile.hip Kernels.compileForAmd PROPERTIES SKIP_RETURN_CODE 77)
  endif()
endif()
