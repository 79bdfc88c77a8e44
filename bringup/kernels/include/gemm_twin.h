// Scalar twin of vectors times a constant matrix, by whole vectors and by rows of an image; see `port_twin.h`.
#pragma once

#include "port_twin.h"

namespace twin {

// x (inputs,), weights (inputs, outputs); x of an image: row after row, pixel after pixel, the channel fastest.
inline void gemm(int32_t inputs, int32_t outputs, int64_t x_zero, int32_t zeros, const Finish& f, const int64_t* x,
                 const int64_t* weights, const int64_t* w_zeros, const int64_t* shifts, const int64_t* bias,
                 const int64_t* multipliers, const int64_t* amounts, int64_t* out) {
    for (int32_t o = 0; o < outputs; ++o) {
        int64_t acc = 0;
        for (int32_t k = 0; k < inputs; ++k) {
            acc = sum(acc, product(x[k] - x_zero, weights[k * outputs + o] - w_zeros[zeros == 1 ? 0 : o]));
        }
        out[o] = finished(f, acc, o, shifts, bias, multipliers, amounts);
    }
}

}  // namespace twin
