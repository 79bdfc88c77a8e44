// Every marked line must be refused by the compiler, and no other.
#include <aie_api/aie.hpp>

aie::vector<int8, 16> a, b;
aie::vector<int16, 16> c;
aie::vector<int32, 16> d;
aie::vector<bfloat16, 16> e;

void vectors() {
  aie::vector<int8, 8> small;                          // REFUSED 128, 256, 512 and 1024 bits
  aie::vector<int16, 24> odd;                          // REFUSED 128, 256, 512 and 1024 bits
  aie::vector<int64, 4> wide;                          // REFUSED constraint
  aie::accum<acc32, 4> few;                            // REFUSED not documented for this accumulator type
  aie::accum<acc64, 128> many;                         // REFUSED not documented for this accumulator type
}
void operands() {
  (void)aie::add(a, c);                                // REFUSED no matching function
  (void)aie::add(a, 1);                                // REFUSED no matching function
  (void)aie::max(c, 0);                                // REFUSED no matching function
  (void)aie::mul(a, d);                                // REFUSED no matching function
  (void)aie::mul(c, e);                                // REFUSED no matching function
  (void)aie::bit_and(a, int8{1});                      // REFUSED no matching function
  (void)aie::lt(a, b.cast_to<uint8>());                // REFUSED no matching function
  aie::accum<acc32, 16> acc = c;                       // REFUSED conversion
  aie::accum<acc64, 16> wider = aie::mul(a, b);        // REFUSED conversion
  (void)aie::mac(aie::mul(c, c), e, e);                // REFUSED accumulator class
}
void shapes() {
  aie::mmul<4, 8, 16, int8, int8> m1;                  // REFUSED shape is not documented
  aie::mmul<2, 2, 2, int16, int16> m2;                 // REFUSED shape is not documented
  aie::mmul<4, 8, 8, int8, bfloat16> m3;               // REFUSED shape is not documented
  aie::mmul<4, 8, 8, int8, int8, acc64> m4;            // REFUSED accumulate in 32 bits
  aie::mmul<4, 4, 4, int16, int16> m5;                 // REFUSED-21 shape is not documented
  aie::mmul<4, 8, 8, bfloat16, bfloat16> m6;           // REFUSED-20 shape is not documented
}
void accepted() {
  aie::accum<acc64, 16> acc(c);
  aie::accum<acc48, 16> same = acc;
  (void)aie::add(same, aie::accum<acc48, 16>(c));
  (void)aie::mul(a, c);
  (void)aie::mac(acc, c, d);
  aie::mmul<4, 8, 8, int8, uint8> m;
  m.mac(aie::zeros<int8, 32>(), aie::zeros<uint8, 64>());
}
