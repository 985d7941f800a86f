// This is the legend of every shape comment in attention/, models/ and ops/. Paper symbols in brackets.
//
//   B   batch
//   T   queries: tokens on the query side
//   S   keys: tokens on the memory side (S = T in self-attention without a cache)
//   E   model width [d_m]
//   H   attention heads [n]
//   D   head width [d]; H D = E unless said
//   g   key/value groups of grouped-query attention
//   R   key width of a whole layer: what all heads' keys have together in `mha`, what they share in
//       `collaborative` [there called D]
//   Hq, Hk, Hv   heads of queries, keys and values: 1, g or H
//   Dk, Dv       width of one query or key head, of one value head
//   V   vocabulary
//
// s is the scale of the scores, c_h[j] the bias of key j in head h, u_h the content bias of head h,
// m_h the mixing of head h, eQ_h, eK_h, eV_h the head embeddings.
// Weights are [out, in] (y = x W^T), so the papers' X W_Q is query(x).
#pragma once
