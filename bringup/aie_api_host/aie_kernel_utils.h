// Public kernels include "../aie_kernel_utils.h"; with -I .../include that name leads here.
#include "include/aie_kernel_utils.h"
