// Sliding multiplication: sums of coefficients times shifted data.
// Source: aie_api aie.hpp (sliding_mul_ops, sliding_mul_x_ops, sliding_mul_y_ops, sliding_mul_xy_ops).
#pragma once

#include "ops_mul.hpp"

namespace aie {

/// out[l] = sum over p of coeff[start + p * CoeffStep] * data[start + p * DataStepX + l * DataStepY].
template <unsigned Lanes, unsigned Points, int CoeffStep, int DataStepX, int DataStepY, ElemBaseType CoeffType,
          ElemBaseType DataType, typename AccumTag = accauto>
struct sliding_mul_ops {
  static_assert(detail::is_valid_mul_v<CoeffType, DataType>);

  static constexpr unsigned lanes = Lanes;
  static constexpr unsigned points = Points;
  using accum_tag = detail::accum_tag_or_default<AccumTag, CoeffType, DataType>;
  using accum_type = accum<accum_tag, Lanes>;

  template <unsigned NC, unsigned ND>
  static accum_type mul(const vector<CoeffType, NC>& coeff, unsigned coeff_start, const vector<DataType, ND>& data,
                        unsigned data_start) {
    return mac(zeros<accum_tag, Lanes>(), coeff, coeff_start, data, data_start);
  }

  template <unsigned NC, unsigned ND>
  static accum_type mac(const accum_type& acc, const vector<CoeffType, NC>& coeff, unsigned coeff_start,
                        const vector<DataType, ND>& data, unsigned data_start) {
    using S = typename accum_type::lane_type;
    accum_type out;
    for (unsigned l = 0; l < Lanes; ++l) {
      S sum = acc.data()[l];
      for (unsigned p = 0; p < Points; ++p) {
        const auto c = coeff.data()[wrapped(static_cast<int>(coeff_start) + static_cast<int>(p) * CoeffStep, NC)];
        const auto d = data.data()[wrapped(static_cast<int>(data_start) + static_cast<int>(p) * DataStepX +
                                               static_cast<int>(l) * DataStepY, ND)];
        sum = detail::wrap_add<S>(sum, detail::wrap_mul<S>(c, d));
      }
      out.data()[l] = sum;
    }
    return out;
  }

 private:
  /// Registers are addressed as rings.
  static unsigned wrapped(int index, unsigned size) {
    const int n = static_cast<int>(size);
    return static_cast<unsigned>(((index % n) + n) % n);
  }
};

template <unsigned Lanes, unsigned Points, int CoeffStep, int DataStepX, ElemBaseType CoeffType,
          ElemBaseType DataType, typename AccumTag = accauto>
using sliding_mul_x_ops = sliding_mul_ops<Lanes, Points, CoeffStep, DataStepX, 1, CoeffType, DataType, AccumTag>;
template <unsigned Lanes, unsigned Points, int CoeffStep, int DataStepY, ElemBaseType CoeffType,
          ElemBaseType DataType, typename AccumTag = accauto>
using sliding_mul_y_ops = sliding_mul_ops<Lanes, Points, CoeffStep, 1, DataStepY, CoeffType, DataType, AccumTag>;
template <unsigned Lanes, unsigned Points, int CoeffStep, int DataStepXY, ElemBaseType CoeffType,
          ElemBaseType DataType, typename AccumTag = accauto>
using sliding_mul_xy_ops =
    sliding_mul_ops<Lanes, Points, CoeffStep, DataStepXY, DataStepXY, CoeffType, DataType, AccumTag>;

}  // namespace aie
