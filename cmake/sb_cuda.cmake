# The CUDA backend. Without it backend/cuda_none.cc takes its place: empty tables and the reason.
# CMake 3.25 does not know that nvcc 13 takes -std=c++20, and which flag says so.
set(SB_CUDA_FOUND OFF)
if(NOT SB_CUDA STREQUAL "OFF" AND NOT SB_SANITIZE AND NOT SB_COVERAGE)
  find_program(SB_NVCC nvcc PATHS /usr/local/cuda/bin)
  if(SB_NVCC)
    set(CMAKE_CUDA_COMPILER ${SB_NVCC})
    set(CMAKE_CUDA_ARCHITECTURES OFF)  # the one target is in SB_CUDA_FLAGS
    enable_language(CUDA)
    set(CMAKE_CUDA_STANDARD 20)
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
    find_package(CUDAToolkit REQUIRED)
    if(SB_CCACHE AND NOT CMAKE_CUDA_COMPILER_LAUNCHER)
      set(CMAKE_CUDA_COMPILER_LAUNCHER ${SB_CCACHE})
    endif()
    set(SB_CUDA_FOUND ON)
  elseif(SB_CUDA STREQUAL "ON")
    message(FATAL_ERROR "SB_CUDA is ON and nvcc was not found on PATH or in /usr/local/cuda/bin")
  endif()
endif()
message(STATUS "CUDA backend: ${SB_CUDA_FOUND}")

# The same arithmetic as sb_strict_fp: no contraction, IEEE division and square root, subnormals kept.
set(SB_CUDA_FLAGS -O3 -gencode=arch=compute_90a,code=sm_90a -fmad=false -ftz=false
  -prec-div=true -prec-sqrt=true --expt-relaxed-constexpr --Werror all-warnings
  -Xcompiler=-ffp-contract=off,-march=x86-64-v3)

# Gives a library the sources of DIR/cuda, or DIR/cuda_none.cc.
function(sb_cuda_sources library dir)
  if(NOT SB_CUDA_FOUND)
    target_sources(${library} PRIVATE ${dir}/cuda_none.cc)
    return()
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${dir}/cuda/*.cu ${dir}/cuda/*.cc)
  target_sources(${library} PRIVATE ${sources})
  target_compile_options(${library} PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:${SB_CUDA_FLAGS}>")
  target_link_libraries(${library} PUBLIC CUDA::cudart_static)
endfunction()
