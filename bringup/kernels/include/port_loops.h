// Loop hints that the compiler reads: Peano takes them as clang loop pragmas, another compiler ignores them.
#pragma once

#if defined(__clang__)
#define PORT_PRAGMA(x) _Pragma(#x)
#define PORT_LOOP_AT_LEAST(n) PORT_PRAGMA(clang loop min_iteration_count(n))
#define PORT_UNROLL_FULL PORT_PRAGMA(clang loop unroll(full))
#else
#define PORT_LOOP_AT_LEAST(n)
#define PORT_UNROLL_FULL
#endif
