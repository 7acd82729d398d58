package org.gradientsync.cuda.internal.nccl;

import org.gradientsync.DataType;
import org.gradientsync.ReduceOp;

/** The codes of element types and operations in nccl.h. */
final class NcclCodes {
  private NcclCodes() {}

  /** The {@code ncclDataType_t}. */
  static int of(DataType type) {
    return switch (type) {
      case INT32 -> 2;
      case INT64 -> 4;
      case FLOAT16 -> 6;
      case FLOAT32 -> 7;
      case FLOAT64 -> 8;
      case BFLOAT16 -> 9;
    };
  }

  /** The {@code ncclRedOp_t}. */
  static int of(ReduceOp op) {
    return switch (op) {
      case SUM -> 0;
      case PROD -> 1;
      case MAX -> 2;
      case MIN -> 3;
      case AVERAGE -> 4;
    };
  }
}
