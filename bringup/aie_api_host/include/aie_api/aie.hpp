// Functional host model of the AIE API subset that kernels of this project and public example kernels use.
// What is modelled and what is not: bringup/aie_api_host/README.md.
#pragma once

#include "host/accum.hpp"
#include "host/address.hpp"
#include "host/cascade.hpp"
#include "host/hints.hpp"
#include "host/iterator.hpp"
#include "host/mask.hpp"
#include "host/memory.hpp"
#include "host/mmul.hpp"
#include "host/native.hpp"
#include "host/ops_arith.hpp"
#include "host/ops_compare.hpp"
#include "host/ops_mul.hpp"
#include "host/ops_reshape.hpp"
#include "host/ops_sliding.hpp"
#include "host/tile.hpp"
#include "host/types.hpp"
#include "host/vector.hpp"
