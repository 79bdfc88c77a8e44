// One exported function per family of operations; the tests call them with 16 lanes and compare with exact integers.
#include <aie_api/aie.hpp>

#include <type_traits>

namespace {

constexpr unsigned N = 16;

template <typename T>
aie::vector<T, N> get(const void* p) {
  return aie::load_unaligned_v<N>(static_cast<const T*>(p));
}
template <typename V>
void put(void* p, const V& v) {
  std::memcpy(p, v.data(), sizeof(v.data()[0]) * V::size());
}
template <typename Acc>
Acc get_acc(const std::int64_t* p) {
  Acc acc;
  for (unsigned i = 0; i < Acc::size(); ++i) acc.data()[i] = static_cast<typename Acc::lane_type>(p[i]);
  return acc;
}
template <typename Acc>
void put_acc(std::int64_t* p, const Acc& acc) {
  for (unsigned i = 0; i < Acc::size(); ++i) p[i] = acc.data()[i];
}

template <typename F>
void with_integer(int code, F f) {
  switch (code) {
    case 0: return f(int8{});
    case 1: return f(uint8{});
    case 2: return f(int16{});
    case 3: return f(uint16{});
    case 4: return f(int32{});
    case 5: return f(uint32{});
    default: std::abort();
  }
}
template <typename F>
void with_accum(int bits, F f) {
  if (bits == 32)
    f(aie::accum<acc32, N>{});
  else
    f(aie::accum<acc64, N>{});
}

}  // namespace

extern "C" {

void probe_modes(int rounding, int saturation) {
  aie::set_rounding(static_cast<aie::rounding_mode>(rounding));
  aie::set_saturation(static_cast<aie::saturation_mode>(saturation));
}

void probe_srs(int type, int bits, int v_sign, const std::int64_t* lanes, int shift, void* out) {
  with_integer(type, [&](auto t) {
    using T = decltype(t);
    with_accum(bits, [&](auto a) {
      const auto acc = get_acc<decltype(a)>(lanes);
      if (v_sign < 0)
        put(out, acc.template to_vector<T>(shift));
      else
        put(out, acc.template to_vector_sign<T>(v_sign != 0, shift));
    });
  });
}

void probe_ups(int type, int bits, const void* lanes, int shift, std::int64_t* out) {
  with_integer(type, [&](auto t) {
    with_accum(bits, [&](auto a) { put_acc(out, decltype(a)(get<decltype(t)>(lanes), shift)); });
  });
}

void probe_binary(int op, int type, const void* a, const void* b, void* out) {
  with_integer(type, [&](auto t) {
    const auto x = get<decltype(t)>(a), y = get<decltype(t)>(b);
    switch (op) {
      case 0: return put(out, aie::add(x, y));
      case 1: return put(out, aie::sub(x, y));
      case 2: return put(out, aie::max(x, y));
      case 3: return put(out, aie::min(x, y));
      case 4: return put(out, aie::bit_and(x, y));
      case 5: return put(out, aie::bit_or(x, y));
      case 6: return put(out, aie::bit_xor(x, y));
      case 7: return put(out, aie::saturating_add(x, y));
      case 8: return put(out, aie::saturating_sub(x, y));
      case 9: return put(out, aie::maxdiff(x, y));
      // With an element in front and behind.
      case 10: return put(out, aie::add(x[3], y));
      case 11: return put(out, aie::sub(x, y.get(3)));
      default: std::abort();
    }
  });
}

void probe_unary(int op, int type, const void* a, unsigned shift, void* out) {
  with_integer(type, [&](auto t) {
    using T = decltype(t);
    const auto x = get<T>(a);
    switch (op) {
      case 0: return put(out, aie::neg(x));
      case 1: return put(out, aie::abs(x));
      case 2: return put(out, aie::bit_not(x));
      case 3: return put(out, aie::upshift(x, shift));
      case 4: return put(out, aie::downshift(x, shift));
      case 5: return put(out, aie::logical_downshift(x, shift));
      case 6: return put(out, aie::broadcast<T, N>(x[shift]));
      case 7: return put(out, aie::zeros<T, N>());
      default: std::abort();
    }
  });
}

void probe_resize(int type, const void* a, int v_sign, void* packed, void* unpacked) {
  with_integer(type, [&](auto t) {
    const auto x = get<decltype(t)>(a);
    if constexpr (sizeof(t) > 1) put(packed, v_sign < 0 ? x.pack() : x.pack_sign(v_sign != 0));
    if constexpr (sizeof(t) < 4) put(unpacked, v_sign < 0 ? x.unpack() : x.unpack_sign(v_sign != 0));
  });
}

void probe_compare(int op, int type, const void* a, const void* b, std::uint32_t* mask, void* selected) {
  with_integer(type, [&](auto t) {
    const auto x = get<decltype(t)>(a), y = get<decltype(t)>(b);
    const auto m = [&] {
      switch (op) {
        case 0: return aie::lt(x, y);
        case 1: return aie::le(x, y);
        case 2: return aie::gt(x, y);
        case 3: return aie::ge(x, y);
        case 4: return aie::eq(x, y);
        case 5: return aie::neq(x, y);
        default: std::abort();
      }
    }();
    *mask = m.to_uint32();
    put(selected, aie::select(x, y, m));
  });
}

std::int64_t probe_reduce(int op, int type, const void* a) {
  std::int64_t out = 0;
  with_integer(type, [&](auto t) {
    const auto x = get<decltype(t)>(a);
    out = op == 0 ? aie::reduce_add(x) : op == 1 ? aie::reduce_max(x) : aie::reduce_min(x);
  });
  return out;
}

/// 1 if the pair of types can be multiplied. `lanes` in and out; op 0 mul, 1 negmul, 2 mac, 3 msc; `scalar`: b is b[2].
int probe_mul(int op, int scalar, int type_a, int type_b, int bits, const void* a, const void* b, std::int64_t* lanes) {
  int valid = 0;
  with_integer(type_a, [&](auto ta) {
    with_integer(type_b, [&](auto tb) {
      using A = decltype(ta);
      using B = decltype(tb);
      if constexpr (aie::MulPair<aie::vector<A, N>, aie::vector<B, N>>) {
        valid = 1;
        const auto x = get<A>(a);
        const auto y = get<B>(b);
        const auto run = [&](const auto& z) {
          with_accum(bits, [&](auto acc) {
            using Acc = decltype(acc);
            using Tag = typename Acc::value_type;
            switch (op) {
              case 0: return put_acc(lanes, Acc(aie::mul<Tag>(x, z)));
              case 1: return put_acc(lanes, Acc(aie::negmul<Tag>(x, z)));
              case 2: return put_acc(lanes, aie::mac(get_acc<Acc>(lanes), x, z));
              case 3: return put_acc(lanes, aie::msc(get_acc<Acc>(lanes), x, z));
              default: std::abort();
            }
          });
        };
        if (scalar)
          run(y[2]);
        else
          run(y);
      }
    });
  });
  return valid;
}

/// Bits of the default accumulator, 0 if the types cannot be multiplied.
int probe_default_bits(int type_a, int type_b) {
  int bits = 0;
  with_integer(type_a, [&](auto ta) {
    with_integer(type_b, [&](auto tb) {
      using A = decltype(ta);
      using B = decltype(tb);
      if constexpr (aie::MulPair<aie::vector<A, N>, aie::vector<B, N>>)
        bits = decltype(aie::mul(aie::vector<A, N>(), aie::vector<B, N>()))::accum_bits();
    });
  });
  return bits;
}

void probe_accum(int op, int bits, int type, const void* v, const std::int64_t* other, std::int64_t* lanes) {
  with_accum(bits, [&](auto a) {
    using Acc = decltype(a);
    const auto x = get_acc<Acc>(lanes), y = get_acc<Acc>(other);
    switch (op) {
      case 0: return put_acc(lanes, aie::add(x, y));
      case 1: return put_acc(lanes, aie::sub(x, y));
      case 2: return put_acc(lanes, aie::neg(x));
      case 3:
        return with_integer(type, [&](auto t) { put_acc(lanes, aie::add(x, get<decltype(t)>(v))); });
      case 4:
        return with_integer(type, [&](auto t) { put_acc(lanes, aie::sub(x, get<decltype(t)>(v)[5])); });
      case 5: {
        const auto both = aie::concat(x, y);
        return put_acc(lanes, both.template extract<N>(1));
      }
      case 6: return put_acc(lanes, aie::zeros<typename Acc::value_type, N>());
      default: std::abort();
    }
  });
}

void probe_accumulate(const std::int16_t* coeff, unsigned start, const std::int8_t* rows, std::int64_t* lanes) {
  const auto c = get<int16>(coeff);
  const auto a = get<int8>(rows), b = get<int8>(rows + N), d = get<int8>(rows + 2 * N);
  put_acc(lanes, aie::accumulate<N>(get_acc<aie::accum<acc32, N>>(lanes), c, start, a, b, d));
}

void probe_sliding(const std::int8_t* coeff, unsigned coeff_start, const std::uint8_t* data, unsigned data_start,
                   std::int64_t* lanes) {
  using ops = aie::sliding_mul_ops<N, 4, 2, 1, 3, int8, uint8>;
  const auto c = get<int8>(coeff);
  const auto d = aie::load_unaligned_v<64>(data);
  put_acc(lanes, ops::mac(get_acc<aie::accum<acc32, N>>(lanes), c, coeff_start, d, data_start));
}

/// One or two results of 16 lanes; `count` says how many lanes of `first` count.
unsigned probe_reshape(int op, unsigned n, const std::int16_t* a, const std::int16_t* b, std::int16_t* first,
                       std::int16_t* second) {
  const auto x = get<int16>(a), y = get<int16>(b);
  const auto pair = [&](const auto& p) {
    put(first, p.first);
    put(second, p.second);
    return N;
  };
  const auto one = [&](const auto& v) {
    put(first, v);
    return v.size();
  };
  switch (op) {
    case 0: return pair(aie::interleave_zip(x, y, n));
    case 1: return pair(aie::interleave_unzip(x, y, n));
    case 2: return one(aie::filter_even(x, n));
    case 3: return one(aie::filter_odd(x, n));
    case 4: return one(aie::shuffle_up(x, n));
    case 5: return one(aie::shuffle_down(x, n));
    case 6: return one(aie::shuffle_up_rotate(x, n));
    case 7: return one(aie::shuffle_down_rotate(x, n));
    case 8: return one(aie::shuffle_up_fill(x, y, n));
    case 9: return one(aie::shuffle_down_fill(x, y, n));
    case 10: return one(aie::shuffle_up_replicate(x, n));
    case 11: return one(aie::shuffle_down_replicate(x, n));
    case 12: return one(aie::reverse(x));
    case 13: return one(aie::transpose(x, n, N / n));
    case 14: return one(aie::concat(x, y).extract<N>(n));
    case 15: return one(aie::vector<int16, 2 * N>().insert(0, x).insert(1, y).template extract<8>(n));
    case 16: return one(shift_bytes(x, y, n));
    case 17: return one(x.cast_to<int8>().template extract<16>(n).cast_to<int16>());
    case 18: return one(aie::vector<int16, N>(x).push(b[0]));
    case 19: return one(x.extract<8>(n).template grow_replicate<N>());
    default: std::abort();
  }
}

/// Values of 16 floats in a bfloat16 vector by way of an accumulator.
void probe_bf16(const float* values, std::uint16_t* out) {
  const aie::accum<accfloat, N> acc(get<float>(values));
  put(out, acc.to_vector<bfloat16>());
}

/// Copies `count` vectors of 16 bytes through iterators of the given kind.
void probe_iterators(int kind, const std::int8_t* in, std::int8_t* out, unsigned count) {
  const auto copy = [count](auto from, auto to) {
    for (unsigned i = 0; i < count; ++i) *to++ = aie::add(*from++, int8{1});
  };
  if (kind == 0) copy(aie::cbegin_vector<N>(in), aie::begin_vector<N>(out));
  if (kind == 1) copy(aie::cbegin_restrict_vector<N>(in), aie::begin_restrict_vector<N>(out));
  if (kind == 2) copy(aie::cbegin_unaligned_vector<N>(in), aie::begin_unaligned_vector<N>(out));
  if (kind == 3) copy(aie::cbegin_vector_circular<N, 2 * N>(in), aie::begin_vector<N>(out));
}

void probe_load(const std::int8_t* in, int lanes) {
  if (lanes == 16) (void)aie::load_v<16>(in);
  if (lanes == 32) (void)aie::load_v<32>(in);
  if (lanes == 64) (void)aie::load_v<64>(in);
}
void probe_store(std::int8_t* out) { aie::store_v(out, aie::zeros<int8, 32>()); }
void probe_load_unaligned(const std::int16_t* in, unsigned aligned) { (void)aie::load_unaligned_v<16>(in, aligned); }
void probe_element(unsigned index) { (void)aie::zeros<int8, 16>().get(index); }

void probe_events(int first, int second) {
  for (int i = 0; i < first; ++i) event0();
  for (int i = 0; i < second; ++i) event1();
}

/// Adds what comes in on the cascade to `lanes` and puts the sum on, as accumulators.
void probe_cascade(std::int64_t* lanes) {
  const aie::accum<acc32, N> sum = aie::add(get_acc<aie::accum<acc32, N>>(lanes), get_scd_v16acc32());
  put_mcd(sum);
  put_acc(lanes, sum);
}

unsigned probe_undefined(std::uint8_t* out) {
  put(out, aie::vector<uint8, 64>());
  return aie_host::poison;
}

/// Offsets that a two-dimensional address generator visits.
void probe_address(unsigned size, int step1, int step2, int count, std::int64_t* offsets) {
  static const char base = 0;
  const char* p = &base;
  dims_2d_t dims = dims_2d_from_steps(size, step1, step2);
  for (int i = 0; i < count; ++i) {
    offsets[i] = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(p) -
                                           reinterpret_cast<std::uintptr_t>(&base));
    p = add_2d_byte(p, dims);
  }
}
}
