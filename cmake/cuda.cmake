# The GPU part of the engine. DT_CUDA: AUTO builds it where nvcc is found, ON insists, OFF leaves it
# out. Sets DT_HAVE_CUDA, and DT_NCCL_LIBRARY and DT_NCCL_INCLUDE where NCCL is found. NCCL and
# cuBLAS may lie apart from the toolkit, as Python's packages of them do: NCCL_ROOT and CUBLAS_ROOT
# (of CMake or the environment) name a folder with their include/ and lib/.
set(DT_CUDA AUTO CACHE STRING "The GPU part of the engine: AUTO, ON or OFF")
set_property(CACHE DT_CUDA PROPERTY STRINGS AUTO ON OFF)
# A100 and H100 in machine code, everything newer from PTX.
set(DT_CUDA_ARCHITECTURES "80-real;90-real;90-virtual" CACHE STRING
  "What libdtrun-cuda.so is compiled for, as CMAKE_CUDA_ARCHITECTURES")
set(DT_HAVE_CUDA OFF)

# dt_find_cuda(NCCL nccl.h nccl libnccl.so.2): DT_NCCL_LIBRARY and DT_NCCL_INCLUDE; only in NCCL_ROOT
# where that is set. The packages have libraries without their development name.
macro(dt_find_cuda name header)
  set(folders ${${name}_ROOT} $ENV{${name}_ROOT})
  if(folders)
    set(where HINTS ${folders} NO_DEFAULT_PATH)
  else()
    set(where HINTS ${CUDAToolkit_LIBRARY_DIR} ${CUDAToolkit_LIBRARY_ROOT} ${CUDAToolkit_INCLUDE_DIRS})
  endif()
  find_library(DT_${name}_LIBRARY NAMES ${ARGN} NAMES_PER_DIR ${where} PATH_SUFFIXES lib lib64)
  find_path(DT_${name}_INCLUDE ${header} ${where} PATH_SUFFIXES include)
  if(DT_${name}_LIBRARY AND DT_${name}_INCLUDE)
    get_filename_component(folder ${DT_${name}_LIBRARY} DIRECTORY)
    list(APPEND DT_CUDA_LIBRARY_DIRS ${folder})
  elseif(folders)
    message(FATAL_ERROR "${name}_ROOT is '${folders}': no ${header} in its include/, or no library in its lib/")
  endif()
endmacro()

if(NOT DT_CUDA STREQUAL OFF)
  find_program(DT_NVCC nvcc HINTS ENV CUDACXX ENV CUDA_PATH /usr/local/cuda PATH_SUFFIXES bin)
  if(DT_NVCC)
    set(CMAKE_CUDA_COMPILER ${DT_NVCC} CACHE FILEPATH "nvcc")
    set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER} CACHE FILEPATH "nvcc's host compiler")
    set(CMAKE_CUDA_ARCHITECTURES ${DT_CUDA_ARCHITECTURES})
    if(CMAKE_CXX_COMPILER_LAUNCHER AND NOT DEFINED CMAKE_CUDA_COMPILER_LAUNCHER)
      set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
    endif()
    set(CMAKE_CUDA_FLAGS_RELWITHDEBINFO "-O2")
    enable_language(CUDA)
    find_package(CUDAToolkit REQUIRED)
    set(DT_HAVE_CUDA ON)
    set(DT_CUDA_LIBRARY_DIRS ${CUDAToolkit_LIBRARY_DIR})
    if(NOT TARGET CUDA::cublasLt) # what find_package() would have made of it
      dt_find_cuda(CUBLAS cublasLt.h cublasLt libcublasLt.so.13 libcublasLt.so.12)
      if(NOT DT_CUBLAS_LIBRARY OR NOT DT_CUBLAS_INCLUDE)
        message(FATAL_ERROR "cuBLAS not found: install it with the CUDA toolkit, or set CUBLAS_ROOT")
      endif()
      add_library(CUDA::cublasLt UNKNOWN IMPORTED)
      set_target_properties(CUDA::cublasLt PROPERTIES IMPORTED_LOCATION ${DT_CUBLAS_LIBRARY}
        INTERFACE_INCLUDE_DIRECTORIES ${DT_CUBLAS_INCLUDE})
    endif()
    dt_find_cuda(NCCL nccl.h nccl libnccl.so.2)
    if(NOT DT_NCCL_LIBRARY OR NOT DT_NCCL_INCLUDE)
      unset(DT_NCCL_LIBRARY CACHE)
      message(STATUS "NCCL not found (libnccl-dev, or NCCL_ROOT): collectives of GPUs go through the host")
    endif()
  elseif(DT_CUDA STREQUAL AUTO)
    message(STATUS "nvcc not found: the engine is built without its GPU part")
  else()
    message(FATAL_ERROR "DT_CUDA is ON, and nvcc was not found: put it into PATH, or set CUDACXX")
  endif()
endif()
