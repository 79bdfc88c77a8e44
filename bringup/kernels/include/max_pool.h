// One row of a maximum over windows; what lies outside the image never wins.
//
// K: what pool_window.h and requantize.h say (finish, along, O, Y, x_zero_point, channels).
#pragma once

#include "pool_window.h"
#include "requantize.h"

namespace port {

template <typename T>
struct Largest {
    using Lanes = aie::vector<T, LANES>;
    static Lanes empty() { return aie::broadcast<T, LANES>(std::numeric_limits<T>::min()); }
    static Lanes with(const Lanes& largest, const Lanes& pixels) { return aie::max(largest, pixels); }
};

// Element by element, for integers of 64 bits.
template <typename K>
inline void max_pool_plain(const typename K::X* const* rows, Taps inside, const int32_t* __restrict requant,
                           typename K::Y* __restrict y) {
    for (int32_t block = 0; block < K::blocks; ++block) {
        for (int32_t pixel = 0; pixel < K::width; ++pixel) {
            const int32_t column = pixel * K::step - K::left;
            const Taps across = taps_inside(column, K::kernel_width, K::right, 0, K::in_width);
            int64_t values[8];
            for (int32_t lane = 0; lane < 8; ++lane) {
                int64_t largest = std::numeric_limits<int64_t>::min();
                for (int32_t tap = inside.first; tap < inside.last; ++tap) {
                    const typename K::X* row = rows[tap * K::down] + block * K::in_width * 8 + lane;
                    for (int32_t at = across.first; at < across.last; ++at) {
                        largest = at_least(row[8 * (column + at * K::right)], largest);
                    }
                }
                values[lane] = minus(largest, K::x_zero_point);
            }
            leave_plain<K>(values, requant, block, pixel, y + (block * K::width + pixel) * 8);
        }
    }
}

template <typename K>
inline void max_pool_kernel(const typename K::X* const* rows, const int32_t* __restrict requant,
                            typename K::Y* __restrict y, int32_t pad_top, int32_t pad_bottom) {
    const Taps inside = taps_inside(0, K::kernel_height, K::down, pad_top, extent<K>() - pad_bottom);
    if constexpr (K::plain) {
        max_pool_plain<K>(rows, inside, requant, y);
    } else {
        Scale scale;
        if constexpr (K::finish == Finish::round && K::along != Along::channel) {
            scale = scale_uniform(requant);
        }
        each_window<K, Largest<typename K::X>>(
            rows, inside,
            [&]<Access A>(int32_t at, int32_t block, int32_t, Taps, const aie::vector<typename K::X, LANES>& largest) {
                if constexpr (K::finish == Finish::clamp) {
                    write<A>(y + at, bounded<typename K::O>(largest));
                } else {
                    if constexpr (K::finish == Finish::round && K::along == Along::channel) {
                        scale = scale_block(requant, block);
                    }
                    write<A>(y + at, leave<K>(centred<K::x_zero_point>(largest), scale));
                }
            });
    }
    clear_padding<K::channels, K::blocks, K::width>(y);
}

}  // namespace port
