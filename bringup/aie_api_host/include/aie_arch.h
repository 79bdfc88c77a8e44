// Stand-in for mlir-aie's aie_kernels/aie_arch.h: what each architecture offers to the kernel library.
#ifndef AIE_HOST_ARCH_H
#define AIE_HOST_ARCH_H

#if defined(AIE_HOST_ARCH) && !defined(__AIE_ARCH__)
#define __AIE_ARCH__ AIE_HOST_ARCH
#endif
#ifndef __AIE_ARCH__
#define __AIE_ARCH__ 20
#endif

#define AIE_ARCH_AIE2 (__AIE_ARCH__ == 20)
#define AIE_ARCH_AIE2P (__AIE_ARCH__ == 21)
#define AIE_BF16_LANES (AIE_ARCH_AIE2 ? 16 : 32)
#define AIE_HAS_NATIVE_TANH AIE_ARCH_AIE2P
#define AIE_HAS_NATIVE_EXP2 AIE_ARCH_AIE2P
#define AIE_HAS_BFP16 AIE_ARCH_AIE2P
#define AIE_LUT_16B_RUN (AIE_ARCH_AIE2 ? 8 : 16)
#define AIE_TUNED_AIE2 AIE_ARCH_AIE2
#define AIE_TUNED_AIE2P AIE_ARCH_AIE2P
#if __AIE_ARCH__ == 20
#define AIE2_RESTRICT __restrict
#else
#define AIE2_RESTRICT
#endif

#endif
