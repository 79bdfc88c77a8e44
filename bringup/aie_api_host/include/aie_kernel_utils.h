// Stand-in for mlir-aie's aie_kernels/aie_kernel_utils.h: under g++ the loop hints expand to nothing, as they do
// upstream for a compiler that is neither chess nor Peano.
#ifndef AIE_HOST_KERNEL_UTILS_H
#define AIE_HOST_KERNEL_UTILS_H

#include "aie_arch.h"

#define AIE_LOOP_UNROLL(x)
#define AIE_LOOP_UNROLL_FULL
#define AIE_LOOP_NO_UNROLL
#define AIE_LOOP_MIN_ITERATION_COUNT(x)
#define AIE_LOOP_MAX_ITERATION_COUNT(x)
#define AIE_LOOP_RANGE(a, ...)
#define AIE_PREPARE_FOR_PIPELINING
#define AIE_NO_PREPARE_FOR_PIPELINING
#define AIE_MODULO_SCHEDULING_BUDGET_RATIO(x)
#define AIE_KEEP_SW_LOOP
#define AIE_PEEL_PIPELINED_LOOP(x)
#define AIE_KEEP_FREE_FOR_PIPELINING(x)
#define AIE_ALLOCATE(x)
#define AIE_NO_HW_LOOP
#define AIE_TRY_INITIATION_INTERVAL(x)
#define AIE_PREPARE_FOR_POSTPIPELINING
#define AIE_LOOP_FLATTEN
#define AIE_LOOP_HINT(k, v)
#define AIE_LOOP_GPR_REALLOC

#define VERSIONED_LOOP(MinIters, count, body, ...) \
  do {                                             \
    for (int aie_host_i = 0; aie_host_i < (count); ++aie_host_i) (body)(); \
  } while (0)

#endif
