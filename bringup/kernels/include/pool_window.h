// Windows over the held rows of an image, two output pixels (16 lanes) at a time.
//
// Pairs of pixels whose window lies inside the row are read with one load for each tap: neighbours where the step is 1,
// every other pixel of four where it is 2. The other pixels, at the borders or with larger steps, go 8 lanes at a time
// over the taps that lie inside.
//
// K: X dtype; kernel_height, kernel_width, step, down, right (dilations), left (padding), in_width; blocks, width.
#pragma once

#include "elementwise.h"

namespace port {

// Taps [first, last) of one axis.
struct Taps {
    int32_t first;
    int32_t last;
};

// Taps of a window of `count` that begins at `begin` which lie in [low, high).
constexpr Taps taps_inside(int32_t begin, int32_t count, int32_t dilation, int32_t low, int32_t high) {
    Taps taps{0, count};
    while (taps.first < count && begin + taps.first * dilation < low) {
        ++taps.first;
    }
    while (taps.last > taps.first && begin + (taps.last - 1) * dilation >= high) {
        --taps.last;
    }
    return taps;
}

template <typename K>
constexpr int32_t extent() {
    return (K::kernel_height - 1) * K::down + 1;
}

// Output pixels [first, last) that are computed in pairs.
template <typename K>
constexpr Taps paired() {
    if constexpr (K::step != 1 && K::step != 2) {
        return {0, 0};
    } else {
        constexpr int32_t reach = (K::kernel_width - 1) * K::right + K::step;
        constexpr int32_t last_read = K::step == 2 && reach < 3 ? 3 : reach;
        int32_t first = 0;
        while (first < K::width && first * K::step < K::left) {
            ++first;
        }
        first += first & 1;
        int32_t last = first;
        while (last + 1 < K::width && last * K::step - K::left + last_read < K::in_width) {
            last += 2;
        }
        return {first, last};
    }
}

// 16 lanes of the pixels `column` and `column + step`; of another tap than the first, what lies in front may be read, so
// that nothing behind the window is.
template <typename K, bool FIRST>
inline aie::vector<typename K::X, LANES> pixel_pair(const typename K::X* __restrict row, int32_t column) {
    if constexpr (K::step == 1) {
        return aie::load_unaligned_v<LANES>(row + 8 * column, 8);
    } else if constexpr (FIRST) {
        return aie::filter_even(aie::load_unaligned_v<2 * LANES>(row + 8 * column, 8), 8);
    } else {
        return aie::filter_odd(aie::load_unaligned_v<2 * LANES>(row + 8 * (column - 1), 8), 8);
    }
}

// Reduces every window of an output row.
//
// R: Lanes: type of a reduction; empty(): its beginning; with(reduction, pixels): one tap more.
// done<access>(at, block, output pixel, taps inside the row, reduction) stores 16 or 8 lanes.
template <typename K, typename R, typename Done>
inline void each_window(const typename K::X* const* rows, Taps inside, Done done) {
    constexpr Taps pairs = paired<K>();
    constexpr Access pair_access = (K::width & 1) == 0 || K::blocks == 1 ? Access::aligned : Access::unaligned;
    for (int32_t block = 0; block < K::blocks; ++block) {
        const int32_t from = block * K::in_width * 8, to = block * K::width * 8;
        for (int32_t pixel = pairs.first; pixel < pairs.last; pixel += 2) {
            const int32_t column = pixel * K::step - K::left;
            typename R::Lanes reduction = R::empty();
            for (int32_t tap = inside.first; tap < inside.last; ++tap) {
                const typename K::X* row = rows[tap * K::down] + from;
                reduction = R::with(reduction, pixel_pair<K, true>(row, column));
                PORT_UNROLL_FULL
                for (int32_t across = 1; across < K::kernel_width; ++across) {
                    reduction = R::with(reduction, pixel_pair<K, false>(row, column + across * K::right));
                }
            }
            done.template operator()<pair_access>(to + 8 * pixel, block, pixel, Taps{0, K::kernel_width}, reduction);
        }
        const auto single = [&](int32_t pixel) {
            const int32_t column = pixel * K::step - K::left;
            const Taps across = taps_inside(column, K::kernel_width, K::right, 0, K::in_width);
            typename R::Lanes reduction = R::empty();
            for (int32_t tap = inside.first; tap < inside.last; ++tap) {
                const typename K::X* row = rows[tap * K::down] + from;
                for (int32_t at = across.first; at < across.last; ++at) {
                    reduction = R::with(reduction, read<Access::half>(row + 8 * (column + at * K::right)));
                }
            }
            done.template operator()<Access::half>(to + 8 * pixel, block, pixel, across, reduction);
        };
        for (int32_t pixel = 0; pixel < pairs.first && pixel < K::width; ++pixel) {
            single(pixel);
        }
        for (int32_t pixel = pairs.last; pixel < K::width; ++pixel) {
            single(pixel);
        }
    }
}

}  // namespace port
