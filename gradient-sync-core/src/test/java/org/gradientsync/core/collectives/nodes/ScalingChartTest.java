package org.gradientsync.core.collectives.nodes;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

class ScalingChartTest {
  @Test
  void axesHaveRoundNumbers() {
    assertEquals("8", ScalingChart.power(3));
    assertEquals("4096", ScalingChart.power(Math.log(4096) / Math.log(2)));
    assertEquals("", ScalingChart.power(3.5));
    assertEquals("0.005", ScalingChart.round(0.005));
    assertEquals("2000", ScalingChart.round(2000.0000001));
    assertEquals("", ScalingChart.round(0.3));
    assertEquals("", ScalingChart.round(0.15));
  }
}
