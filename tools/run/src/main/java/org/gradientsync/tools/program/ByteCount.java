package org.gradientsync.tools.program;

import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/** Parses numbers of bytes with suffixes for powers of 1024: 4096, 64K, 256M, 1G. */
public final class ByteCount implements ITypeConverter<Long> {
  private static final Pattern NUMBER =
      Pattern.compile("(\\d{1,18})([KMG]?)", Pattern.CASE_INSENSITIVE);

  @Override
  public Long convert(String value) {
    Matcher number = NUMBER.matcher(value);
    if (!number.matches()) {
      throw refusal(value);
    }
    int power = " KMG".indexOf((number.group(2) + " ").toUpperCase(Locale.ROOT).charAt(0));
    long units = Long.parseLong(number.group(1));
    if (units > Long.MAX_VALUE >> 10 * power) {
      throw refusal(value);
    }
    return units << 10 * power;
  }

  private static TypeConversionException refusal(String value) {
    return new TypeConversionException(
        "'" + value + "' is not a number of bytes like 4096, 64K, 256M or 1G");
  }
}
