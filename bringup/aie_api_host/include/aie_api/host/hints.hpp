// Loop hints of the chess compiler: no effect on values.
// Source: mlir-aie aie_kernels (chess_prepare_for_pipelining chess_loop_range(16, ) between `for` and its body).
#pragma once

#define chess_prepare_for_pipelining
#define chess_no_prepare_for_pipelining
#define chess_loop_range(...)
#define chess_loop_count(...)
#define chess_unroll_loop(...)
#define chess_flatten_loop
#define chess_storage(...)
#define chess_copy(value) (value)
#define chess_separator_scheduler(...)
#define chess_memory_fence()
#define chess_protect_access
#define chess_manifest(condition) (false)
