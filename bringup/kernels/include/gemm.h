// Vectors times a constant matrix: 16 output channels at a time, one k after the other; 8 channels that are left over
// take two k at a time, and the two halves are added at the end.
//
// A configuration C says at compile time what `port_lanes.h` lists, and
//   X, W              elements of the vector (or row) and of the weights, as planned
//   IN_FIRST, IN_COUNT   first k that is read, and how many (Gemm)
//   IN_WIDTH, IN_CHANNELS   of a row (GemmRows)
//   CHUNK             output channels that the weights hold
//   X_ZERO, SPLITS    zero point; codes without it take more than 16 bits
//   W_ZEROS           zero points of the weights, one for all channels or one for each
// Packed weights: for each 16 channels (K, 16), more than 8 that are left over filled up to 16; for 8 channels or less
// that are left over (K / 2 rounded up, 2, 8). GemmRows: the same for each row of the image. Accumulators in memory:
// blocks of 16.
#pragma once

#include "port_lanes.h"

namespace port {

// Blocks of columns of a matrix of CHUNK channels and K terms.
template <int32_t CHUNK, int32_t TERMS>
struct Blocks {
    static constexpr int32_t LEFT = CHUNK & 15;
    static constexpr int32_t FULL = (CHUNK >> 4) + (LEFT > 8 ? 1 : 0);
    static constexpr bool HALF = LEFT > 0 && LEFT <= 8;
    static constexpr int32_t FULL_ELEMENTS = int32_t(LANES) * TERMS;
    static constexpr int32_t ELEMENTS = FULL * FULL_ELEMENTS + (HALF ? int32_t(LANES) * ((TERMS + 1) >> 1) : 0);
};

template <class C>
struct Columns {
    using W = typename C::W;
    using Short = aie::vector<int16, LANES>;
    using Accumulator = Sums<C::BITS>;

    Short points;

    Columns(unsigned first, bool half) {
        alignas(64) int16_t all[LANES];
        for (unsigned i = 0; i < LANES; ++i) {
            all[i] = int16_t(of_channel(C::W_ZEROS, first + (half ? (i & 7) : i)));
        }
        points = aie::load_v<LANES>(all);
    }

    Short at(const W* __restrict weights) const {
        const Short all = columns16(weights);
        return any(C::W_ZEROS) ? Short(aie::sub(all, points)) : all;
    }

    // One k for 16 channels.
    void add(Accumulator& sums, const W* __restrict weights, int32_t code) const {
        multiply<C::SPLITS>(sums, at(weights), code);
    }

    // Two k for 8 channels.
    void add(Accumulator& sums, const W* __restrict weights, int32_t even, int32_t odd) const {
        const int32_t even_high = C::SPLITS ? even >> 1 : 0, odd_high = C::SPLITS ? odd >> 1 : 0;
        const Short taken = at(weights);
        sums = aie::mac(sums, taken, pair(even - even_high, odd - odd_high));
        if constexpr (C::SPLITS) {
            sums = aie::mac(sums, taken, pair(even_high, odd_high));
        }
    }

    static Short pair(int32_t even, int32_t odd) {
        return aie::concat(aie::broadcast<int16, 8>(int16_t(even)), aie::broadcast<int16, 8>(int16_t(odd)));
    }

    // Both halves added, twice.
    static Accumulator folded(const Accumulator& sums) {
        const auto both = aie::add(sums.template extract<8>(0), sums.template extract<8>(1));
        return aie::concat(both, both);
    }

    static Accumulator zero() { return aie::zeros<typename Accumulator::value_type, LANES>(); }
};

template <class C>
struct Gemm {
    using X = typename C::X;
    using W = typename C::W;
    using T = typename C::Out::type;
    using B = Blocks<C::CHUNK, C::IN_COUNT>;
    using Accumulator = Sums<C::BITS>;

    static int32_t code(const X* __restrict x, int32_t k) { return int32_t(x[C::IN_FIRST + k]) - C::X_ZERO; }

    static Accumulator full(const X* __restrict x, const W* __restrict weights, const Columns<C>& columns) {
        Accumulator all = columns.zero();
        PORT_LOOP_AT_LEAST(1)
        for (int32_t k = 0; k < C::IN_COUNT; ++k) {
            columns.add(all, weights + int32_t(LANES) * k, code(x, k));
        }
        return all;
    }

    static Accumulator half(const X* __restrict x, const W* __restrict weights, const Columns<C>& columns) {
        Accumulator all = columns.zero();
        for (int32_t k = 0; k + 1 < C::IN_COUNT; k += 2) {
            columns.add(all, weights + 8 * k, code(x, k), code(x, k + 1));
        }
        if constexpr ((C::IN_COUNT & 1) != 0) {
            columns.add(all, weights + 8 * (C::IN_COUNT - 1), code(x, C::IN_COUNT - 1), 0);
        }
        return columns.folded(all);
    }

    static void leave(const Accumulator& sums, unsigned first, const BiasOf<C::BITS>* __restrict bias,
                      const int32_t* __restrict requant, T* __restrict out, unsigned end) {
        const Place place = place_of<C>(first);
        const Tail<C, C::BITS> tail(place, bias, requant);
        write<C>(tail, sums, C::CASCADE_OUT ? nullptr : out + first, place, end - first < LANES ? end - first : LANES);
    }

    static void run(const X* __restrict x, const W* __restrict weights, const BiasOf<C::BITS>* __restrict bias,
                    const int32_t* __restrict requant, T* __restrict out, int32_t offset) {
        constexpr unsigned rounded = (C::CHANNELS + 7) & ~7u;
        const unsigned chunk = unsigned(offset) + ((C::CHUNK + 7) & ~7u);
        const unsigned end = chunk < rounded ? chunk : rounded;
        unsigned first = unsigned(offset);
        for (int32_t block = 0; block < B::FULL && first < end; ++block) {
            leave(full(x, weights, Columns<C>(first, false)), first, bias, requant, out, end);
            weights += B::FULL_ELEMENTS;
            first += LANES;
        }
        if (B::HALF && first < end) {
            leave(half(x, weights, Columns<C>(first, true)), first, bias, requant, out, end);
        }
    }
};

template <class C>
struct GemmRows {
    using X = typename C::X;
    using W = typename C::W;
    using B = Blocks<C::CHUNK, C::IN_WIDTH * C::IN_CHANNELS>;
    using Accumulator = Sums<C::BITS>;

    // The codes of a row, pixel by pixel, the channel fastest.
    struct Walk {
        const X* row;
        int32_t pixel = 0, channel = 0;

        int32_t next() {
            const int32_t code = row[8 * ((channel >> 3) * C::IN_WIDTH + pixel) + (channel & 7)];
            const bool last = channel + 1 == C::IN_CHANNELS;
            channel = last ? 0 : channel + 1;
            pixel += last ? 1 : 0;
            return code - C::X_ZERO;
        }
    };

    static Accumulator full(const X* __restrict row, const W* __restrict weights, const Columns<C>& columns) {
        Accumulator all = columns.zero();
        for (int32_t pixel = 0; pixel < C::IN_WIDTH; ++pixel) {
            PORT_LOOP_AT_LEAST(1)
            for (int32_t channel = 0; channel < C::IN_CHANNELS; ++channel) {
                const int32_t code = row[8 * ((channel >> 3) * C::IN_WIDTH + pixel) + (channel & 7)];
                columns.add(all, weights, code - C::X_ZERO);
                weights += LANES;
            }
        }
        return all;
    }

    static Accumulator half(const X* __restrict row, const W* __restrict weights, const Columns<C>& columns) {
        constexpr int32_t terms = C::IN_WIDTH * C::IN_CHANNELS;
        Accumulator all = columns.zero();
        Walk walk = {row};
        for (int32_t k = 0; k + 1 < terms; k += 2) {
            const int32_t even = walk.next(), odd = walk.next();
            columns.add(all, weights + 8 * k, even, odd);
        }
        if constexpr ((terms & 1) != 0) {
            columns.add(all, weights + 8 * (terms - 1), walk.next(), 0);
        }
        return columns.folded(all);
    }

    static void keep_sums(BiasOf<C::BITS>* __restrict acc, const Accumulator& sums, bool clears) {
        keep(acc, clears ? sums : Accumulator(aie::add(sums, sums_at(acc))));
    }

    static void run(const X* __restrict row, const W* __restrict weights, BiasOf<C::BITS>* __restrict acc, int32_t at) {
        weights += B::ELEMENTS * at;
        for (int32_t block = 0; block < B::FULL; ++block) {
            const unsigned first = LANES * unsigned(block);
            keep_sums(acc + first, full(row, weights, Columns<C>(first, false)), at == 0);
            weights += B::FULL_ELEMENTS;
        }
        if constexpr (B::HALF) {
            constexpr unsigned first = LANES * unsigned(B::FULL);
            keep_sums(acc + first, half(row, weights, Columns<C>(first, true)), at == 0);
        }
    }
};

template <class C>
struct GemmFinish {
    using T = typename C::Out::type;

    static void run(const BiasOf<C::BITS>* __restrict acc, const BiasOf<C::BITS>* __restrict bias,
                    const int32_t* __restrict requant, T* __restrict out) {
        constexpr unsigned rounded = (C::CHANNELS + 7) & ~7u;
        for (unsigned first = 0; first < rounded; first += LANES) {
            const Place place = place_of<C>(first);
            const Tail<C, C::BITS> tail(place, bias, requant);
            const unsigned elements = rounded - first < LANES ? rounded - first : LANES;
            write<C>(tail, sums_at(acc + first), out + first, place, elements);
        }
    }
};

}  // namespace port
