package org.gradientsync.tools.plot;

import de.erichseifert.vectorgraphics2d.Processors;
import de.erichseifert.vectorgraphics2d.VectorGraphics2D;
import de.erichseifert.vectorgraphics2d.util.PageSize;
import java.awt.Graphics2D;
import java.io.IOException;
import java.nio.file.Path;
import java.util.function.Consumer;
import org.gradientsync.tools.program.NewFile;

/** Writes drawings as SVG. */
public final class Svg {
  private Svg() {}

  public static void write(Path file, int width, int height, Consumer<Graphics2D> drawing)
      throws IOException {
    System.setProperty("java.awt.headless", "true"); // ranks have no screen
    VectorGraphics2D graphics = new VectorGraphics2D();
    drawing.accept(graphics);
    NewFile.write(
        file,
        Processors.get("svg").getDocument(graphics.getCommands(), new PageSize(width, height))
            ::writeTo);
  }
}
