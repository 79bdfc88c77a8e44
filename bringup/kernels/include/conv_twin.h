// Scalar twin of a convolution's row; see `port_twin.h`.
#pragma once

#include "port_twin.h"

namespace twin {

struct Conv {
    int32_t channels;  // of the rows
    int32_t outputs;
    int32_t inputs;  // channels that are summed over, of a group
    int32_t width;
    int32_t out_width;
    int32_t kernel_height, kernel_width, stride, down, right, left;
    int32_t group_outputs, group, out_first;
    int32_t first;  // channel of the first group that the first weight belongs to
    int32_t top, bottom;
    int64_t x_zero;
    int32_t w_zeros;  // 1, or one for each output channel
};

// rows (extent, channels, width), weights (outputs, inputs, height, width), out (outputs, out_width).
inline void conv(const Conv& c, const Finish& f, const int64_t* rows, const int64_t* weights, const int64_t* w_zeros,
                 const int64_t* shifts, const int64_t* bias, const int64_t* multipliers, const int64_t* amounts,
                 int64_t* out) {
    const int32_t extent = (c.kernel_height - 1) * c.down + 1;
    for (int32_t o = 0; o < c.outputs; ++o) {
        const int32_t base = c.first + (c.group > 1 ? (c.out_first + o) / c.group_outputs * c.inputs : 0);
        for (int32_t pixel = 0; pixel < c.out_width; ++pixel) {
            int64_t acc = 0;
            for (int32_t i = 0; i < c.inputs; ++i) {
                for (int32_t y = 0; y < c.kernel_height; ++y) {
                    for (int32_t x = 0; x < c.kernel_width; ++x) {
                        const int32_t row = y * c.down, column = pixel * c.stride + x * c.right - c.left;
                        const bool inside = row >= c.top && row < extent - c.bottom && column >= 0 && column < c.width;
                        if (inside) {
                            const int64_t code = rows[(row * c.channels + base + i) * c.width + column];
                            const int64_t w = weights[((o * c.inputs + i) * c.kernel_height + y) * c.kernel_width + x];
                            acc = sum(acc, product(code - c.x_zero, w - w_zeros[c.w_zeros == 1 ? 0 : o]));
                        }
                    }
                }
            }
            out[o * c.out_width + pixel] = finished(f, acc, o, shifts, bias, multipliers, amounts);
        }
    }
}

}  // namespace twin
