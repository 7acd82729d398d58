package org.gradientsync.tools.links;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.code_intelligence.jazzer.api.FuzzedDataProvider;
import com.code_intelligence.jazzer.junit.FuzzTest;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import org.gradientsync.tools.program.ByteCount;
import picocli.CommandLine.TypeConversionException;

/** Tries arbitrary figures of arbitrary links, and arbitrary text as a number of bytes. */
class LinkKindFuzzTest {
  @FuzzTest
  void anyFiguresMakeATable(FuzzedDataProvider data) {
    List<LinkKind.Link> links = new ArrayList<>();
    for (int i = data.consumeInt(0, 6); i > 0; i--) {
      links.add(
          new LinkKind.Link(
              data.consumeString(5),
              data.consumeString(5),
              data.consumeDouble(),
              data.consumeBoolean()));
    }
    LinkKind kind = new LinkKind("kind", "GB/s", data.consumeBoolean(), links);
    assertEquals(
        links.stream().map(LinkKind.Link::from).distinct().count() + 2, kind.lines().size());
    assertEquals(kind.slow().size(), kind.complaints().size());
    assertFalse(kind.lines().stream().collect(Collectors.joining()).isEmpty());
  }

  @FuzzTest
  void anyTextIsANumberOfBytesOrRefused(FuzzedDataProvider data) {
    String text = data.consumeRemainingAsString();
    try {
      assertTrue(new ByteCount().convert(text) >= 0, text);
    } catch (TypeConversionException e) {
      assertTrue(e.getMessage().contains(text), e::toString);
    }
  }
}
