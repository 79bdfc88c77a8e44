// Scalar twin of products of matrices; see `port_twin.h`.
#pragma once

#include "port_twin.h"

namespace twin {

// a (batches, rows, inner) and b (batches, inner, columns) without zero points, out (batches, rows, columns).
inline void matmul(int32_t batches, int32_t rows, int32_t inner, int32_t columns, const Finish& f, const int64_t* a,
                   const int64_t* b, const int64_t* shifts, const int64_t* bias, const int64_t* multipliers,
                   const int64_t* amounts, int64_t* out) {
    for (int32_t batch = 0; batch < batches; ++batch) {
        for (int32_t row = 0; row < rows; ++row) {
            for (int32_t column = 0; column < columns; ++column) {
                int64_t acc = 0;
                for (int32_t k = 0; k < inner; ++k) {
                    const int64_t left = a[(batch * rows + row) * inner + k];
                    acc = sum(acc, product(left, b[(batch * inner + k) * columns + column]));
                }
                out[(batch * rows + row) * columns + column] =
                    finished(f, acc, column, shifts, bias, multipliers, amounts);
            }
        }
    }
}

}  // namespace twin
