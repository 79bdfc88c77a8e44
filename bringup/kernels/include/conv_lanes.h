// One row of a convolution by lanes: two pixels x 8 output channels, 16 bits x 16 bits, one input channel at a time.
//
// For what `conv_mmul.h` does not do: groups, accumulators of 64 bits, weights that do not fit 8 bits without their
// zero point, 16-bit weights, integers that leave unrounded, promotions that vary along channels.
//
// A configuration C says at compile time what `port_lanes.h` lists, and
//   X, W              elements of the rows and of the weights, as planned
//   IN_WIDTH, OUT_WIDTH, KERNEL_HEIGHT, KERNEL_WIDTH, STRIDE, DOWN, RIGHT, LEFT: as in `conv_mmul.h`
//   IN_COUNT          channels that are summed over, of a group
//   GROUPED, DEPTHWISE   DEPTHWISE: output channel o reads input channel o + IN_FIRST, a multiple of 8, alone
//   IN_FIRST          channel of the row that the first weight belongs to, where not GROUPED
//   SOURCES           the same for each output channel where GROUPED
//   CHUNK_BLOCKS, X_ZERO: as in `conv_mmul.h`
//   W_ZEROS           zero points of the weights, one for all channels or one for each
//   SPLITS            codes without zero point take more than 16 bits: each is taken as a sum of two halves
// Packed weights: (CHUNK_BLOCKS, KERNEL_HEIGHT, KERNEL_WIDTH, IN_COUNT, 8), 0 behind the last channel, and 8 elements
// more at the end. What is outside the image is skipped by taking the zero point for it.
#pragma once

#include "port_lanes.h"

namespace port {

template <class C>
struct ConvLanes {
    using X = typename C::X;
    using W = typename C::W;
    using T = typename C::Out::type;
    using Short = aie::vector<int16, LANES>;
    using Accumulator = Sums<C::BITS>;

    static const X* padding() {
        constexpr X zero = X(C::X_ZERO);
        alignas(64) static const X all[8] = {zero, zero, zero, zero, zero, zero, zero, zero};
        return all;
    }

    // Where the 8 channels of block 0 of a pixel are, and how far it is to the next block.
    struct Pixel {
        const X* at;
        int32_t step;

        Pixel(const X* __restrict row, int32_t column) {
            const bool inside = column >= 0 && column < C::IN_WIDTH;
            at = inside ? row + 8 * column : padding();
            step = inside ? 8 * C::IN_WIDTH : 0;
        }

        int32_t code(int32_t channel) const { return int32_t(at[(channel >> 3) * step + (channel & 7)]) - C::X_ZERO; }
    };

    // Weights of one input channel for 8 output channels, twice, without zero point.
    static Short weights_at(const W* __restrict at, const Short& points) {
        aie::vector<int16, 8> half;
        if constexpr (sizeof(W) == 1) {
            half = aie::load_unaligned_v<LANES>(at, 8).unpack().template cast_to<int16>().template extract<8>(0);
        } else {
            half = aie::load_v<8>(at).template cast_to<int16>();
        }
        const Short both = aie::concat(half, half);
        return any(C::W_ZEROS) ? Short(aie::sub(both, points)) : both;
    }

    static Short points_of(unsigned first) {
        alignas(64) int16_t all[LANES];
        for (unsigned i = 0; i < LANES; ++i) {
            all[i] = int16_t(of_channel(C::W_ZEROS, first + (i & 7)));
        }
        return aie::load_v<LANES>(all);
    }

    static void add(Accumulator& sums, const Short& weights, const int32_t* __restrict codes) {
        alignas(64) int16_t low[LANES];
        alignas(64) int16_t high[LANES];
        for (unsigned i = 0; i < LANES; ++i) {
            high[i] = C::SPLITS ? int16_t(codes[i] >> 1) : int16_t(0);
            low[i] = int16_t(codes[i] - high[i]);
        }
        sums = aie::mac(sums, weights, aie::load_v<LANES>(low));
        if constexpr (C::SPLITS) {
            sums = aie::mac(sums, weights, aie::load_v<LANES>(high));
        }
    }

    // All input channels of one tap: every output channel reads the same ones.
    static void dense(Accumulator& sums, const Pixel& left, const Pixel& right, const W* __restrict weights,
                      const Short& points) {
        PORT_LOOP_AT_LEAST(1)
        for (int32_t i = 0; i < C::IN_COUNT; ++i) {
            const int32_t a = left.code(C::IN_FIRST + i), b = right.code(C::IN_FIRST + i);
            const int32_t a_high = C::SPLITS ? a >> 1 : 0, b_high = C::SPLITS ? b >> 1 : 0;
            const Short taken = weights_at(weights + 8 * i, points);
            sums = aie::mac(sums, taken, pair(a - a_high, b - b_high));
            if constexpr (C::SPLITS) {
                sums = aie::mac(sums, taken, pair(a_high, b_high));
            }
        }
    }

    static Short pair(int32_t left, int32_t right) {
        return aie::concat(aie::broadcast<int16, 8>(int16_t(left)), aie::broadcast<int16, 8>(int16_t(right)));
    }

    // Every output channel reads its own input channel.
    static void depthwise(Accumulator& sums, const Pixel& left, const Pixel& right, const W* __restrict weights,
                          const Short& points, unsigned first) {
        const int32_t block = (C::IN_FIRST + int32_t(first)) >> 3;
        alignas(64) X both[LANES];
        std::memcpy(both, left.at + block * left.step, 8 * sizeof(X));
        std::memcpy(both + 8, right.at + block * right.step, 8 * sizeof(X));
        const Short taken = weights_at(weights, points);
        if constexpr (C::SPLITS || sizeof(X) == 2) {
            int32_t codes[LANES];
            for (unsigned i = 0; i < LANES; ++i) {
                codes[i] = int32_t(both[i]) - C::X_ZERO;
            }
            add(sums, taken, codes);
        } else {
            const Short codes = aie::load_v<LANES>(both).unpack().template cast_to<int16>();
            sums = aie::mac(sums, taken, Short(aie::sub(codes, aie::broadcast<int16, LANES>(int16_t(C::X_ZERO)))));
        }
    }

    // Every output channel reads the channels of its group, which `from` tells for each lane.
    static void grouped(Accumulator& sums, const Pixel& left, const Pixel& right, const W* __restrict weights,
                        const Short& points, const int32_t* __restrict from) {
        PORT_LOOP_AT_LEAST(1)
        for (int32_t i = 0; i < C::IN_COUNT; ++i) {
            int32_t codes[LANES];
            for (unsigned lane = 0; lane < 8; ++lane) {
                codes[lane] = left.code(from[lane] + i);
                codes[lane + 8] = right.code(from[lane] + i);
            }
            add(sums, weights_at(weights + 8 * i, points), codes);
        }
    }

    static void run(const X* const* rows, const W* __restrict weights, const BiasOf<C::BITS>* __restrict bias,
                    const int32_t* __restrict requant, T* __restrict out, int32_t top, int32_t bottom, int32_t offset) {
        constexpr int32_t taps = C::KERNEL_HEIGHT * C::KERNEL_WIDTH * C::IN_COUNT;
        constexpr unsigned chunks = C::CHUNK_BLOCKS, channels = C::CHANNELS;
        for (unsigned chunk = 0; chunk < chunks && unsigned(offset) + 8 * chunk < channels; ++chunk) {
            const Place place = {unsigned(offset) + 8 * chunk, true};
            const Tail<C, C::BITS> tail(place, bias, requant);
            const Short points = points_of(place.first);
            int32_t from[8];
            for (unsigned lane = 0; lane < 8; ++lane) {
                from[lane] = of_channel(C::SOURCES, place.first + lane);
            }
            for (int32_t pixel = 0; pixel < C::OUT_WIDTH; pixel += 2) {
                Accumulator sums = aie::zeros<typename Accumulator::value_type, LANES>();
                for (int32_t y = 0; y < C::KERNEL_HEIGHT; ++y) {
                    const int32_t row = y * C::DOWN;
                    if (row < top || row >= (C::KERNEL_HEIGHT - 1) * C::DOWN + 1 - bottom) {
                        continue;
                    }
                    for (int32_t x = 0; x < C::KERNEL_WIDTH; ++x) {
                        const int32_t column = pixel * C::STRIDE + x * C::RIGHT - C::LEFT;
                        const Pixel left(rows[row], column);
                        const Pixel right(rows[row], column + C::STRIDE);
                        const W* at = weights + 8 * (int32_t(chunk) * taps + (y * C::KERNEL_WIDTH + x) * C::IN_COUNT);
                        if constexpr (C::DEPTHWISE) {
                            depthwise(sums, left, right, at, points, place.first);
                        } else if constexpr (C::GROUPED) {
                            grouped(sums, left, right, at, points, from);
                        } else {
                            dense(sums, left, right, at, points);
                        }
                    }
                }
                const unsigned elements = C::OUT_WIDTH - pixel < 2 ? 8 : LANES;
                T* to = C::CASCADE_OUT ? nullptr : out + 8 * (int32_t(place.first >> 3) * C::OUT_WIDTH + pixel);
                write<C>(tail, sums, to, place, elements);
            }
        }
    }
};

}  // namespace port
