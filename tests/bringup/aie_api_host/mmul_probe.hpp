// One function for each documented shape; the table is written by the test from the documentation's rows.
#include <aie_api/aie.hpp>

namespace {

template <typename V>
V vector_from(const void* p) {
  V v;
  std::memcpy(static_cast<void*>(v.data()), p, sizeof(v.data()[0]) * V::size());
  return v;
}

template <typename Acc>
void put_lanes(std::int64_t* out, const Acc& acc) {
  for (unsigned i = 0; i < Acc::size(); ++i) out[i] = acc.data()[i];
}

/// sums = start + A B as accumulators, narrow = its 16 bit and wide = its 32 bit results, again = accumulators of an
/// mmul made of `wide`, product = A B from an mmul that was only default constructed, order = the raw order of an
/// mmul that was made of the 16 bit numbers 0, 1, 2, ...
template <typename MM>
void run(const void* a, const void* b, const std::int64_t* start, std::int64_t* sums, std::int16_t* narrow,
         std::int32_t* wide, std::int64_t* again, std::int64_t* product,
         std::int32_t* order) {
  const auto va = vector_from<typename MM::vector_A_type>(a);
  const auto vb = vector_from<typename MM::vector_B_type>(b);
  typename MM::accum_type acc;
  for (unsigned i = 0; i < MM::size_C; ++i) acc.data()[i] = static_cast<typename MM::lane_type>(start[i]);
  MM c(acc);
  c.mac(va, vb);
  put_lanes(sums, c.to_accum());
  const auto n = c.template to_vector<int16>(2);
  std::memcpy(narrow, n.data(), sizeof(int16) * MM::size_C);
  const auto w = c.template to_vector<int32>(0);
  std::memcpy(wide, w.data(), sizeof(int32) * MM::size_C);
  put_lanes(again, MM(w).to_accum());
  MM fresh;
  fresh.mac(va, vb);
  MM overwritten(acc);
  overwritten.mul(va, vb);
  put_lanes(product, fresh.to_accum());
  for (unsigned i = 0; i < MM::size_C; ++i)
    if (overwritten.to_accum().data()[i] != fresh.to_accum().data()[i]) product[i] = -1;
  aie::vector<int16, MM::size_C> numbers;
  for (unsigned i = 0; i < MM::size_C; ++i) numbers.set(static_cast<int16>(i), i);
  const auto o = MM(numbers).template to_vector<int32>();
  std::memcpy(order, o.data(), sizeof(int32) * MM::size_C);
}

template <typename MM>
void run_float(const float* a, const float* b, float* sums) {
  typename MM::vector_A_type va;
  typename MM::vector_B_type vb;
  for (unsigned i = 0; i < MM::size_A; ++i) va.set(a[i], i);
  for (unsigned i = 0; i < MM::size_B; ++i) vb.set(b[i], i);
  MM c;
  c.mac(va, vb);
  const auto v = c.template to_vector<float>();
  std::memcpy(sums, v.data(), sizeof(float) * MM::size_C);
}

}  // namespace

extern "C" int probe_is_shape(int type, unsigned m, unsigned k, unsigned n) {
  using aie::detail::is_mmul_shape;
  switch (type) {
    case 0: return is_mmul_shape<int8, int8>(m, k, n);
    case 1: return is_mmul_shape<int16, int8>(m, k, n);
    case 2: return is_mmul_shape<int8, int16>(m, k, n);
    case 3: return is_mmul_shape<int16, int16>(m, k, n);
    case 4: return is_mmul_shape<int32, int16>(m, k, n);
    case 5: return is_mmul_shape<int16, int32>(m, k, n);
    case 6: return is_mmul_shape<int32, int32>(m, k, n);
    case 7: return is_mmul_shape<bfloat16, bfloat16>(m, k, n);
    case 8: return is_mmul_shape<float, float>(m, k, n);
    case 9: return is_mmul_shape<bfloat16, int16>(m, k, n) + is_mmul_shape<float, int32>(m, k, n);
    default: std::abort();
  }
}
