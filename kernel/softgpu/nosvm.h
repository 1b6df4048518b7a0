/* SPDX-License-Identifier: GPL-2.0 */
/* Included before everything: the parts of amdkfd that are left out. */
#undef CONFIG_HSA_AMD_SVM
#undef CONFIG_HSA_AMD_P2P
