package org.gradientsync.cuda.internal.driver;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteOrder;
import jcuda.Pointer;
import org.gradientsync.DataType;
import org.junit.jupiter.api.Test;

class JCublasApiTest {
  @Test
  void whatJCublasIsGivenIsUsedAgain() {
    JCublasApi.Arguments arguments = new JCublasApi.Arguments();
    Pointer a = arguments.a(0x1234);
    assertEquals("CUdeviceptr[nativePointer=0x1234,byteOffset=0]", a.toString());
    assertSame(a, arguments.a(0x5678));
    assertEquals("CUdeviceptr[nativePointer=0x5678,byteOffset=0]", a.toString());
    Pointer alpha = arguments.alpha(DataType.FLOAT32, 0.1);
    Pointer beta = arguments.beta(DataType.FLOAT64, -3);
    assertEquals(0.1f, alpha.getByteBuffer(0, 16).order(ByteOrder.nativeOrder()).getFloat(0));
    assertTrue(beta.toString().contains("byteOffset=8"), beta::toString);
    assertEquals(-3.0, beta.getByteBuffer(8, 8).order(ByteOrder.nativeOrder()).getDouble(0));
    assertSame(alpha, arguments.alpha(DataType.FLOAT64, 1));
  }
}
