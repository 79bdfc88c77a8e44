// One row of a convolution by `aie::mmul`: R pixels x 8 input channels times 8 input channels x 8 output channels.
//
// A configuration C says at compile time what `port_lanes.h` lists (BITS is 32), and
//   X, W              elements of the rows and of the packed weights; R: pixels of one multiplication
//   IN_WIDTH, OUT_WIDTH, KERNEL_HEIGHT, KERNEL_WIDTH, STRIDE, DOWN, RIGHT (dilations), LEFT (padding)
//   IN_BLOCK, IN_BLOCKS  first block of 8 channels that is read, and how many; the packed weights are 0 for channels
//                        that are not summed over
//   CHUNK_BLOCKS      blocks of 8 output channels that the weights hold
//   X_ZERO            zero point of the rows
// PROMOTIONS holds one number.
// Packed weights, for each block of 8 output channels: a tile with -X_ZERO * (sum of all weights of the channel) if
// X_ZERO is not 0, then (KERNEL_HEIGHT, KERNEL_WIDTH, IN_BLOCKS) tiles of 8 input x 8 output channels. Packed bias: a
// tile for each block; packed requant: {multiplier, shift} where UNIFORM, else a tile for each block (`port_raw.h`).
//
// Codes go in as they are: the zero point is in the tile of corrections, and what lies outside the image is X_ZERO.
#pragma once

#include "port_lanes.h"
#include "port_raw.h"

namespace port {

template <class C>
struct ConvMmul {
    using X = typename C::X;
    using W = typename C::W;
    using O = typename C::Out;
    using T = typename O::type;
    using M = aie::mmul<C::R, 8, 8, X, W>;
    using Params = Raw<M, X>;
    using Lanes = typename Params::Lanes;
    using Rows = typename M::vector_A_type;

    static constexpr int32_t TAPS = C::KERNEL_HEIGHT * C::KERNEL_WIDTH * C::IN_BLOCKS;
    static constexpr int32_t HEAD = C::X_ZERO != 0 ? 1 : 0;

    // What is added and multiplied behind the sums of one block of output channels. Few vectors on purpose: they are
    // more than the registers hold, and a tile's stack is small.
    struct Channels {
        Lanes addend, multiplier, shift;  // multiplier and shift only where they differ
        Scale same;                       // only where they do not
        int32_t lowest = 0, highest = 0;

        Scale scale(unsigned half) const {
            if constexpr (C::UNIFORM) {
                return same;
            } else {
                return {multiplier.template extract<LANES>(half), shift.template extract<LANES>(half), lowest, highest};
            }
        }
    };

    static constexpr bool ADDS = HEAD != 0 || (C::HAS_BIAS && !C::CASCADE_OUT);

    // The correction goes through the promotion, which multiplies it like the sums.
    static Channels channels(const W* __restrict weights, const W* __restrict bias, const void* __restrict requant,
                             unsigned block) {
        Channels all;
        if constexpr (HEAD != 0) {
            all.addend = Params::number(aie::load_v<64>(weights));
        }
        if constexpr (!C::CASCADE_OUT) {
            if constexpr (HEAD != 0) {
                all.addend = doubled(all.addend, C::PROMOTIONS[0]);
            }
            if constexpr (C::HAS_BIAS) {
                const Lanes added = Params::number(aie::load_v<64>(bias + 64 * block));
                all.addend = HEAD != 0 ? Lanes(aie::add(all.addend, added)) : added;
            }
            if constexpr (C::UNIFORM) {
                all.same = scale_uniform(static_cast<const int32_t*>(requant));
            } else {
                const auto tile = aie::load_v<64>(static_cast<const W*>(requant) + 64 * block);
                all.multiplier = Params::number(tile);
                all.shift = Params::shift(tile);
                all.lowest = aie::reduce_min(all.shift);
                all.highest = aie::reduce_max(all.shift);
            }
        }
        return all;
    }

    // Pixels of a tile that lie side by side in memory.
    static Rows beside(const X* __restrict at) { return aie::load_unaligned_v<8 * C::R>(at, 8); }

    // Pixels of a tile one by one; `step` is 0 for those outside the image, whose address is that of the padding.
    struct Gather {
        const X* from[C::R];
        int32_t step[C::R];

        Gather(const X* __restrict row, int32_t column) {
            for (int32_t pixel = 0; pixel < int32_t(C::R); ++pixel) {
                const int32_t at = column + pixel * C::STRIDE;
                const bool inside = at >= 0 && at < C::IN_WIDTH;
                from[pixel] = inside ? row + 8 * (C::IN_BLOCK * C::IN_WIDTH + at) : padding();
                step[pixel] = inside ? 8 * C::IN_WIDTH : 0;
            }
        }

        Rows tile(int32_t block) const {
            alignas(64) X all[8 * C::R];
            PORT_UNROLL_FULL
            for (unsigned pixel = 0; pixel < C::R; ++pixel) {
                std::memcpy(all + 8 * pixel, from[pixel] + block * step[pixel], 8 * sizeof(X));
            }
            return aie::load_v<8 * C::R>(all);
        }
    };

    static const X* padding() {
        constexpr X zero = X(C::X_ZERO);
        alignas(64) static const X all[8] = {zero, zero, zero, zero, zero, zero, zero, zero};
        return all;
    }

    // One tap of the kernel for R output pixels from `column` of the input on.
    static void tap(M& sums, const X* __restrict row, const W* __restrict weights, int32_t column) {
        const bool inside = column >= 0 && column + int32_t(C::R) <= C::IN_WIDTH;
        if (C::STRIDE == 1 && inside) {
            const X* at = row + 8 * (C::IN_BLOCK * C::IN_WIDTH + column);
            PORT_LOOP_AT_LEAST(1)
            for (int32_t block = 0; block < C::IN_BLOCKS; ++block) {
                sums.mac(beside(at), aie::load_v<64>(weights));
                at += 8 * C::IN_WIDTH;
                weights += 64;
            }
            return;
        }
        const Gather pixels(row, column);
        PORT_LOOP_AT_LEAST(1)
        for (int32_t block = 0; block < C::IN_BLOCKS; ++block) {
            sums.mac(pixels.tile(block), aie::load_v<64>(weights));
            weights += 64;
        }
    }

    // A row of the window that lies outside the image: every code is the zero point.
    static void outside(M& sums, const W* __restrict weights) {
        const Rows all = aie::broadcast<X, 8 * C::R>(X(C::X_ZERO));
        PORT_LOOP_AT_LEAST(1)
        for (int32_t tile = 0; tile < C::KERNEL_WIDTH * C::IN_BLOCKS; ++tile) {
            sums.mac(all, aie::load_v<64>(weights));
            weights += 64;
        }
    }

    static Lanes sums(const X* const* rows, const W* __restrict weights, int32_t pixel, int32_t top, int32_t bottom) {
        M all(aie::zeros<typename M::accum_type::value_type, M::size_C>());
        for (int32_t y = 0; y < C::KERNEL_HEIGHT; ++y) {
            const W* at = weights + 64 * y * C::KERNEL_WIDTH * C::IN_BLOCKS;
            const int32_t row = y * C::DOWN;
            if (row >= top && row < (C::KERNEL_HEIGHT - 1) * C::DOWN + 1 - bottom) {
                for (int32_t x = 0; x < C::KERNEL_WIDTH; ++x) {
                    tap(all, rows[row], at + 64 * x * C::IN_BLOCKS, pixel * C::STRIDE + x * C::RIGHT - C::LEFT);
                }
            } else if (C::X_ZERO != 0) {
                outside(all, at);
            }
        }
        return all.template to_vector<int32>();
    }

    // 16 lanes of the sums with what came by the cascade; to the next one where the cascade goes on.
    static Values cascaded(const Values& sums, const Channels& with, unsigned half) {
        Values lanes = sums;
        if constexpr (C::CASCADE_IN) {
            lanes = aie::add(lanes, cascade_get());
        }
        if constexpr (C::CASCADE_OUT) {
            if constexpr (ADDS) {
                lanes = aie::add(lanes, with.addend.template extract<LANES>(half));
            }
            cascade_put(lanes);
        }
        return lanes;
    }

    // Codes of R pixels x 8 channels, row-major.
    static aie::vector<T, M::size_C> codes_of(const Lanes& sums, const Channels& with) {
        Lanes moved;
        for (unsigned half = 0; half < Params::HALVES; ++half) {
            Values lanes = cascaded(sums.template extract<LANES>(half), with, half);
            if constexpr (C::PROMOTIONS[0] != 0) {
                lanes = doubled(lanes, C::PROMOTIONS[0]);
            }
            if constexpr (ADDS) {
                lanes = aie::add(lanes, with.addend.template extract<LANES>(half));
            }
            const Scale scale = with.scale(half);
            moved.insert(half, displaced<O>(rounded<O>(scaled(lanes, scale), scale)));
        }
        return bounded<O>(M(moved).template to_vector<T>(0));
    }

    static void put(T* __restrict out, const aie::vector<T, M::size_C>& codes, int32_t pixels, unsigned channels) {
        if (pixels == int32_t(C::R) && channels == 8) {
            aie::store_unaligned_v(out, codes);
            return;
        }
        alignas(64) T all[M::size_C];
        aie::store_v(all, codes);
        for (int32_t pixel = 0; pixel < pixels; ++pixel) {
            for (unsigned channel = 0; channel < 8; ++channel) {
                out[8 * pixel + channel] = channel < channels ? all[8 * pixel + channel] : T(0);
            }
        }
    }

    static void run(const X* const* rows, const W* __restrict weights, const W* __restrict bias,
                    const void* __restrict requant, T* __restrict out, int32_t top, int32_t bottom, int32_t offset) {
        constexpr unsigned chunks = C::CHUNK_BLOCKS, blocks = (C::CHANNELS + 7) >> 3;
        const unsigned first = unsigned(offset) >> 3;
        for (unsigned chunk = 0; chunk < chunks && first + chunk < blocks; ++chunk) {
            const unsigned block = first + chunk;
            const W* at = weights + 64 * chunk * (HEAD + TAPS);
            const Channels with = channels(at, bias, requant, block);
            const unsigned left = C::CHANNELS - 8 * block;
            for (int32_t pixel = 0; pixel < C::OUT_WIDTH; pixel += int32_t(C::R)) {
                const Lanes all = sums(rows, at + 64 * HEAD, pixel, top, bottom);
                if constexpr (C::CASCADE_OUT) {
                    for (unsigned half = 0; half < Params::HALVES; ++half) {
                        cascaded(all.template extract<LANES>(half), with, half);
                    }
                } else {
                    const int32_t pixels = C::OUT_WIDTH - pixel < int32_t(C::R) ? C::OUT_WIDTH - pixel : int32_t(C::R);
                    put(out + 8 * (block * C::OUT_WIDTH + pixel), codes_of(all, with), pixels, left < 8 ? left : 8);
                }
            }
        }
    }
};

}  // namespace port
