// One row of averages; a window is divided by the number of elements that it holds.
//
// requant: for every count {multiplier, shift}, with `wide` {multiplier, shift, high}: multiplier = high << room | low.
// K: what pool_window.h says and O, Y, finish, x_zero_point, channels, plain, wide, room; narrow: sums fit 16 bits;
// count_of[(rows) * (kernel_width + 1) + columns]: number of the count; weight[]: per count, 1 unless the sum is exact;
// padded: pads count; pad_bottom, pad_right of the image; acc_bits (where plain).
#pragma once

#include "pool_window.h"
#include "requantize.h"

namespace port {

template <typename T, bool NARROW>
struct Sum {
    using Lanes = Values;
    static Lanes empty() { return aie::zeros<int32, LANES>(); }
    static Lanes with(const Lanes& sum, const aie::vector<T, LANES>& pixels) { return aie::add(sum, widened(pixels)); }
    static Values values(const Lanes& sum) { return sum; }
};

template <typename T>
struct Sum<T, true> {
    using Lanes = aie::vector<int16, LANES>;
    static Lanes empty() { return aie::zeros<int16, LANES>(); }
    static Lanes with(const Lanes& sum, const aie::vector<T, LANES>& pixels) {
        return aie::add(sum, pixels.unpack().template cast_to<int16>());
    }
    static Values values(const Lanes& sum) { return widened(sum); }
};

constexpr int32_t length(Taps taps) { return taps.last - taps.first; }

// Taps across that an average counts, for an output pixel.
template <typename K>
constexpr int32_t counted_across(int32_t pixel) {
    constexpr int32_t low = K::padded ? -K::left : 0, high = K::in_width + (K::padded ? K::pad_right : 0);
    return length(taps_inside(pixel * K::step - K::left, K::kernel_width, K::right, low, high));
}

// Taps down that an average counts.
template <typename K>
inline int32_t counted_down(int32_t pad_top, int32_t pad_bottom) {
    if constexpr (K::padded) {
        const int32_t more = pad_bottom < K::pad_bottom ? pad_bottom : K::pad_bottom;
        return length(taps_inside(0, K::kernel_height, K::down, 0, extent<K>() - pad_bottom + more));
    } else {
        return length(taps_inside(0, K::kernel_height, K::down, pad_top, extent<K>() - pad_bottom));
    }
}

// Element by element, for sums that need 64 bits.
template <typename K>
inline void average_pool_plain(const typename K::X* const* rows, Taps inside, int32_t down,
                               const int32_t* __restrict requant, typename K::Y* __restrict y) {
    constexpr int32_t unused = 64 - K::acc_bits;
    for (int32_t pixel = 0; pixel < K::width; ++pixel) {
        const int32_t column = pixel * K::step - K::left;
        const Taps across = taps_inside(column, K::kernel_width, K::right, 0, K::in_width);
        const int32_t count = K::count_of[down * (K::kernel_width + 1) + counted_across<K>(pixel)];
        for (int32_t block = 0; block < K::blocks; ++block) {
            int64_t values[8];
            for (int32_t lane = 0; lane < 8; ++lane) {
                int64_t sum = 0;
                for (int32_t tap = inside.first; tap < inside.last; ++tap) {
                    const typename K::X* row = rows[tap * K::down] + block * K::in_width * 8 + lane;
                    for (int32_t at = across.first; at < across.last; ++at) {
                        sum = plus(sum, minus(row[8 * (column + at * K::right)], K::x_zero_point));
                    }
                }
                sum = static_cast<int64_t>(static_cast<uint64_t>(sum) << unused) >> unused;
                values[lane] = times(sum, K::weight[count]);
            }
            leave_plain<K>(values, K::finish == Finish::round ? requant + 2 * count : requant, block, pixel,
                           y + (block * K::width + pixel) * 8);
        }
    }
}

// The average of a sum, of the number `count`.
template <typename K>
inline aie::vector<typename K::Y, LANES> averaged(const Values& sum, const int32_t* __restrict requant, int32_t count) {
    if constexpr (K::finish == Finish::exact) {
        const Values weight = aie::broadcast<int32, LANES>(int32_t(K::weight[count]));
        return aie::mul<acc64>(sum, weight).template to_vector<int32>(0);
    } else if constexpr (K::finish == Finish::clamp) {
        return clipped<typename K::O>(sum);
    } else {
        const int32_t* pair = requant + (K::wide ? 3 : 2) * count;
        const Scale scale = scale_uniform(pair);
        if constexpr (K::wide) {
            return finish<typename K::O>(plus_wide<K::room>(scaled(sum, scale), sum, pair[2]), scale);
        } else {
            return finish<typename K::O>(sum, scale);
        }
    }
}

template <typename K>
inline void average_pool_kernel(const typename K::X* const* rows, const int32_t* __restrict requant,
                                typename K::Y* __restrict y, int32_t pad_top, int32_t pad_bottom) {
    const Taps inside = taps_inside(0, K::kernel_height, K::down, pad_top, extent<K>() - pad_bottom);
    const int32_t down = counted_down<K>(pad_top, pad_bottom);
    if constexpr (K::plain) {
        average_pool_plain<K>(rows, inside, down, requant, y);
    } else {
        using Total = Sum<typename K::X, K::narrow>;
        const int32_t held = length(inside);
        each_window<K, Total>(
            rows, inside,
            [&]<Access A>(int32_t at, int32_t, int32_t pixel, Taps across, const typename Total::Lanes& lanes) {
                Values sum = Total::values(lanes);
                if constexpr (K::x_zero_point != 0) {
                    const int32_t offset = K::x_zero_point * held * length(across);
                    sum = aie::sub(sum, aie::broadcast<int32, LANES>(offset));
                }
                const int32_t count = K::count_of[down * (K::kernel_width + 1) + counted_across<K>(pixel)];
                write<A>(y + at, averaged<K>(sum, requant, count));
            });
    }
    clear_padding<K::channels, K::blocks, K::width>(y);
}

}  // namespace port
