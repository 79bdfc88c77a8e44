// A product of whole operands: 16 columns of the result and 4 rows at a time, one k after the other.
//
// Operands and result are lists of objects. A configuration C says at compile time what `port_lanes.h` lists (channels
// are the columns of the result), and
//   A, B              elements of the operands
//   ROWS, INNER, BATCHES
//   A_SPLITS, B_SPLITS   codes without zero point take more than 16 bits
//   A_ZEROS, B_ZEROS  zero points: one, or one for each k and for each column
//   class AtA, AtB, AtY   where element (batch, row, column) is: object `object[batch] + row * ROW_OBJECT + column *
//                     COLUMN_OBJECT`, element `element[batch] + row * ROW_ELEMENT + column * COLUMN_ELEMENT` of it
//   B_PADDED          columns of an object of B that may be read, at least CHANNELS
//   Y_PADDED          columns of an object of the result, those behind CHANNELS are 0; 0 = they are not side by side
//   Y_CLEARED         elements of an object of the result that are 0 where nothing is written, Y_POINTERS objects; or 0
#pragma once

#include "port_lanes.h"

namespace port {

template <class At, typename P>
inline auto* element_of(P* const* objects, int32_t batch, int32_t row, int32_t column) {
    return objects[At::object[batch] + row * At::ROW_OBJECT + column * At::COLUMN_OBJECT] + At::element[batch] +
           row * At::ROW_ELEMENT + column * At::COLUMN_ELEMENT;
}

template <class C>
struct Matmul {
    using A = typename C::A;
    using B = typename C::B;
    using T = typename C::Out::type;
    using Short = aie::vector<int16, LANES>;
    using Accumulator = Sums<C::BITS>;

    static constexpr bool BESIDE = C::AtB::COLUMN_OBJECT == 0 && C::AtB::COLUMN_ELEMENT == 1;
    static constexpr int32_t TOGETHER = 4;

    // 16 elements of a row of B without zero point, halved where they need it.
    struct Lanes {
        Short low, high;

        Lanes(const B* const* b, int32_t batch, int32_t k, int32_t first) {
            alignas(64) B all[LANES] = {};
            const int32_t left = C::B_PADDED - first, count = left < int32_t(LANES) ? left : int32_t(LANES);
            if constexpr (BESIDE) {
                std::memcpy(all, element_of<typename C::AtB>(b, batch, k, first), unsigned(count) * sizeof(B));
            } else {
                for (int32_t i = 0; i < count; ++i) {
                    all[i] = *element_of<typename C::AtB>(b, batch, k, first + i);
                }
            }
            alignas(64) int16_t lows[LANES];
            alignas(64) int16_t highs[LANES];
            for (int32_t i = 0; i < int32_t(LANES); ++i) {
                const int32_t code = int32_t(all[i]) - of_channel(C::B_ZEROS, unsigned(first + i));
                highs[i] = int16_t(C::B_SPLITS ? code >> 1 : 0);
                lows[i] = int16_t(code - highs[i]);
            }
            low = aie::load_v<LANES>(lows);
            high = aie::load_v<LANES>(highs);
        }
    };

    static void run(const A* const* a, const B* const* b, const BiasOf<C::BITS>* __restrict bias,
                    const int32_t* __restrict requant, T* const* y) {
        if constexpr (C::Y_CLEARED != 0) {
            for (int32_t i = 0; i < C::Y_POINTERS; ++i) {
                std::memset(y[i], 0, C::Y_CLEARED * sizeof(T));
            }
        }
        for (int32_t first = 0; first < int32_t(C::CHANNELS); first += int32_t(LANES)) {
            const Place place = place_of<C>(unsigned(first));
            const Tail<C, C::BITS> tail(place, bias, requant);
            for (int32_t batch = 0; batch < C::BATCHES; ++batch) {
                for (int32_t row = 0; row < C::ROWS; row += TOGETHER) {
                    const int32_t count = C::ROWS - row < TOGETHER ? C::ROWS - row : TOGETHER;
                    Accumulator sums[TOGETHER];
                    for (int32_t i = 0; i < TOGETHER; ++i) {
                        sums[i] = aie::zeros<typename Accumulator::value_type, LANES>();
                    }
                    for (int32_t k = 0; k < C::INNER; ++k) {
                        const Lanes lanes(b, batch, k, first);
                        for (int32_t i = 0; i < count; ++i) {
                            const A* at = element_of<typename C::AtA>(a, batch, row + i, k);
                            const int32_t code = int32_t(*at) - of_channel(C::A_ZEROS, unsigned(k));
                            multiply<C::A_SPLITS>(sums[i], lanes.low, code);
                            if constexpr (C::B_SPLITS) {
                                multiply<C::A_SPLITS>(sums[i], lanes.high, code);
                            }
                        }
                    }
                    for (int32_t i = 0; i < count; ++i) {
                        leave(tail, sums[i], y, batch, row + i, place);
                    }
                }
            }
        }
    }

    static void leave(const Tail<C, C::BITS>& tail, const Accumulator& sums, T* const* y, int32_t batch, int32_t row,
                      Place place) {
        if constexpr (C::Y_PADDED != 0) {
            const unsigned left = C::Y_PADDED - place.first;
            write<C>(tail, sums, element_of<typename C::AtY>(y, batch, row, int32_t(place.first)), place,
                     left < LANES ? left : LANES);
        } else {
            T all[LANES];
            write<C>(tail, sums, all, place, LANES);
            const unsigned left = C::CHANNELS - place.first;
            for (unsigned i = 0; i < (left < LANES ? left : LANES); ++i) {
                *element_of<typename C::AtY>(y, batch, row, int32_t(place.first + i)) = all[i];
            }
        }
    }
};

}  // namespace port
