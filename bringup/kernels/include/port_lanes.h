// Kernels whose 16 lanes are output channels in a known order: what is behind the sums of products.
//
// The order is known because nothing but elementwise operations of the API is used: multiplications of a vector with a
// vector or a scalar, additions, shift-round-saturate. No matrix multiplication, whose 32-bit lanes have none.
//
// A configuration C says at compile time:
//   Out            port::Output of the codes, or port::Exact<T> for integers that leave as they are
//   BITS           32 or 64: where accumulators wrap
//   CHANNELS       output channels of this part, ROUNDED up to 8 by whoever allocates the output
//   HAS_BIAS, UNIFORM (one multiplier and shift for all channels), CASCADE_IN, CASCADE_OUT
//   WRAPS          saturation of the tile is off (64 bits only)
//   PROMOTIONS     left shifts in front of the bias, one for all channels or one for each
// Packed parameters: bias one number for each channel, blocks filled with 0; requant {multiplier, shift} where UNIFORM,
// else (blocks, 2, 8).
#pragma once

#include "port_finish.h"
#include "port_wide.h"

namespace port {

template <typename T>
struct Exact {
    using type = T;
};

// Figure of a channel, of one for all or one for each; lanes behind the last channel take the last one's.
template <unsigned N>
constexpr int32_t of_channel(const int32_t (&all)[N], unsigned channel) {
    return all[channel < N ? channel : N - 1];
}

template <unsigned N>
constexpr bool any(const int32_t (&all)[N]) {
    for (unsigned i = 0; i < N; ++i) {
        if (all[i] != 0) {
            return true;
        }
    }
    return false;
}

template <typename O>
inline constexpr bool is_exact = false;
template <typename T>
inline constexpr bool is_exact<Exact<T>> = true;

template <unsigned BITS>
using Sums = std::conditional_t<BITS == 32, aie::accum<acc32, LANES>, Products>;

template <unsigned BITS>
using BiasOf = std::conditional_t<BITS == 32, int32_t, int64_t>;

// One word of a cascade holds 16 lanes of 32 bits.
inline void cascade_put(const Values& lanes) {
#if __AIE_ARCH__ == 20
    put_mcd((v16int32)lanes);
#else
    aie::accum<acc32, LANES> word;
    word.from_vector(lanes, 0);
    put_mcd(word.to_native());
#endif
}

inline Values cascade_get() {
#if __AIE_ARCH__ == 20
    return Values(get_scd_v16int32());
#else
    return aie::accum<acc32, LANES>(get_scd_v16acc32()).to_vector<int32>(0);
#endif
}

inline void cascade_put(const Wide& lanes) {
    alignas(64) int32_t low[LANES];
    alignas(64) int32_t high[LANES];
    for (unsigned i = 0; i < LANES; ++i) {
        low[i] = int32_t(uint32_t(uint64_t(lanes.lane[i])));
        high[i] = int32_t(lanes.lane[i] >> 32);
    }
    cascade_put(aie::load_v<LANES>(low));
    cascade_put(aie::load_v<LANES>(high));
}

// 16 columns of a packed matrix.
template <typename W>
inline aie::vector<int16, LANES> columns16(const W* __restrict at) {
    if constexpr (sizeof(W) == 1) {
        return aie::load_v<LANES>(at).unpack().template cast_to<int16>();
    } else {
        return aie::load_v<LANES>(at).template cast_to<int16>();
    }
}

// Multiplies with a code without zero point, of more than 16 bits where SPLITS: it is the sum of two halves then.
template <bool SPLITS, class S>
inline void multiply(S& sums, const aie::vector<int16, LANES>& weights, int32_t code) {
    const int32_t high = SPLITS ? code >> 1 : 0;
    sums = aie::mac(sums, weights, int16_t(code - high));
    if constexpr (SPLITS) {
        sums = aie::mac(sums, weights, int16_t(high));
    }
}

// Accumulators in memory.
inline aie::accum<acc32, LANES> sums_at(const int32_t* __restrict at) {
    aie::accum<acc32, LANES> sums;
    sums.from_vector(aie::load_v<LANES>(at), 0);
    return sums;
}

inline Products sums_at(const int64_t* __restrict at) {
    Wide lanes;
    for (unsigned i = 0; i < LANES; ++i) {
        lanes.lane[i] = at[i];
    }
    return accumulator_of(lanes);
}

inline void keep(int32_t* __restrict at, const aie::accum<acc32, LANES>& sums) {
    aie::store_v(at, sums.to_vector<int32>(0));
}

inline void keep(int64_t* __restrict at, const Products& sums) {
    const Wide lanes = lanes_of(sums);
    for (unsigned i = 0; i < LANES; ++i) {
        at[i] = lanes.lane[i];
    }
}

inline void add_cascade(Wide& lanes) {
    const Values low = cascade_get(), high = cascade_get();
    for (unsigned i = 0; i < LANES; ++i) {
        const uint64_t word = (uint64_t(uint32_t(high.get(i))) << 32) | uint32_t(low.get(i));
        lanes.lane[i] = int64_t(uint64_t(lanes.lane[i]) + word);
    }
}

// Where a lane's channel is: `pairs` = two pixels of the block of 8 that begins at `first`, else 16 channels in a row.
struct Place {
    unsigned first;  // a multiple of 8
    bool pairs;
    unsigned channel(unsigned lane) const { return first + (pairs ? (lane & 7) : lane); }
};

// 16 channels in a row, or the last 8: their block is there twice, and nothing behind it is read.
template <class C>
inline Place place_of(unsigned first) {
    return {first, first + 8 >= unsigned(C::CHANNELS)};
}

template <class C, unsigned BITS>
struct Tail;

template <class C>
struct Tail<C, 32> {
    Values bias;
    Values promotion;
    Scale scale;
    int32_t highest = 0;

    Tail(Place place, const int32_t* __restrict biases, const int32_t* __restrict requant) {
        if constexpr (C::HAS_BIAS && !C::CASCADE_OUT) {
            const aie::vector<int32, 8> low = aie::load_v<8>(biases + place.first);
            bias = aie::concat(low, place.pairs ? low : aie::load_v<8>(biases + place.first + 8));
        }
        if constexpr (any(C::PROMOTIONS) && !C::CASCADE_OUT) {
            alignas(64) int32_t amounts[LANES];
            for (unsigned i = 0; i < LANES; ++i) {
                amounts[i] = of_channel(C::PROMOTIONS, place.channel(i));
                highest = amounts[i] > highest ? amounts[i] : highest;
            }
            promotion = aie::load_v<LANES>(amounts);
        }
        if constexpr (!is_exact<typename C::Out> && !C::CASCADE_OUT) {
            if constexpr (C::UNIFORM) {
                scale = scale_uniform(requant);
            } else {
                scale = place.pairs ? scale_block(requant, place.first >> 3) : scale_vector(requant, place.first >> 3);
            }
        }
    }

    Values promoted(const Values& lanes) const {
        Values all = lanes, moved = lanes;
        for (int32_t amount = 1; amount <= highest; ++amount) {
            moved = doubled(moved, 1);
            all = aie::select(all, moved, aie::eq(promotion, amount));
        }
        return all;
    }

    // The codes, or integers; where a cascade goes out nothing is returned that counts.
    aie::vector<typename C::Out::type, LANES> leave(const Sums<32>& sums) const {
        Values lanes = sums.template to_vector<int32>(0);
        if constexpr (C::CASCADE_IN) {
            lanes = aie::add(lanes, cascade_get());
        }
        if constexpr (C::CASCADE_OUT) {
            cascade_put(lanes);
            return aie::zeros<typename C::Out::type, LANES>();
        } else {
            if constexpr (any(C::PROMOTIONS)) {
                lanes = promoted(lanes);
            }
            if constexpr (C::HAS_BIAS) {
                lanes = aie::add(lanes, bias);
            }
            if constexpr (is_exact<typename C::Out>) {
                return lanes;
            } else {
                return finish<typename C::Out>(lanes, scale);
            }
        }
    }
};

template <class C>
struct Tail<C, 64> {
    Place place;
    const int64_t* __restrict biases;
    int32_t multiplier[LANES] = {};
    int32_t shift[LANES] = {};

    Tail(Place at, const int64_t* __restrict bias, const int32_t* __restrict requant) : place(at), biases(bias) {
        if constexpr (!is_exact<typename C::Out> && !C::CASCADE_OUT) {
            for (unsigned i = 0; i < LANES; ++i) {
                const unsigned channel = place.channel(i);
                const int32_t* pair = C::UNIFORM ? requant : requant + 16 * (channel >> 3) + (channel & 7);
                multiplier[i] = pair[0];
                shift[i] = pair[C::UNIFORM ? 1 : 8];
            }
        }
    }

    Wide values(const Products& sums) const {
        Wide lanes = lanes_of(sums);
        if constexpr (C::CASCADE_IN) {
            add_cascade(lanes);
        }
        if constexpr (!C::CASCADE_OUT) {
            for (unsigned i = 0; i < LANES; ++i) {
                uint64_t lane = uint64_t(lanes.lane[i]);
                if constexpr (any(C::PROMOTIONS)) {
                    lane <<= of_channel(C::PROMOTIONS, place.channel(i));
                }
                if constexpr (C::HAS_BIAS) {
                    lane += uint64_t(biases[place.channel(i)]);
                }
                lanes.lane[i] = int64_t(lane);
            }
        }
        return lanes;
    }

    auto leave(const Products& sums) const {
        const Wide lanes = values(sums);
        if constexpr (C::CASCADE_OUT) {
            cascade_put(lanes);
            return aie::zeros<typename C::Out::type, LANES>();
        } else {
            return finish_wide<typename C::Out, C::WRAPS>(lanes, multiplier, shift);
        }
    }
};

// Lanes of channels beyond the last one are 0.
template <class C, typename T>
inline void put_lanes(T* __restrict out, const aie::vector<T, LANES>& lanes, Place place, unsigned elements) {
    alignas(64) T all[LANES];
    aie::store_v(all, lanes);
    for (unsigned i = 0; i < elements; ++i) {
        out[i] = place.channel(i) < C::CHANNELS ? all[i] : T(0);
    }
}

template <class C, typename T>
inline void put_wide(T* __restrict out, const Wide& lanes, Place place, unsigned elements) {
    for (unsigned i = 0; i < elements; ++i) {
        out[i] = place.channel(i) < C::CHANNELS ? T(lanes.lane[i]) : T(0);
    }
}

// Sums to memory: `elements` lanes from the first one on.
template <class C>
inline void write(const Tail<C, C::BITS>& tail, const Sums<C::BITS>& sums, typename C::Out::type* __restrict out,
                  Place place, unsigned elements) {
    if constexpr (C::BITS == 64 && (is_exact<typename C::Out>)) {
        const Wide lanes = tail.values(sums);
        if constexpr (C::CASCADE_OUT) {
            cascade_put(lanes);
        } else {
            put_wide<C>(out, lanes, place, elements);
        }
    } else {
        const auto lanes = tail.leave(sums);
        if constexpr (!C::CASCADE_OUT) {
            if (elements == LANES && place.first + (place.pairs ? 8 : LANES) <= C::CHANNELS) {
                store(out, lanes);
            } else {
                put_lanes<C>(out, lanes, place, elements);
            }
        }
    }
}

}  // namespace port
