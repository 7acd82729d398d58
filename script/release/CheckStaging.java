import java.io.IOException;
import java.io.InputStream;
import java.lang.module.ModuleDescriptor;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.jar.JarFile;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import javax.xml.parsers.DocumentBuilderFactory;
import org.w3c.dom.Element;
import org.w3c.dom.Node;

/**
 * Checks a staging folder against what Maven Central asks of a publisher: java CheckStaging.java FOLDER [signed]
 *
 * <p>Prints what is wrong, and ends with 1 if anything is. With "signed" each file has to have a signature; whether a
 * signature is right, gpg knows.
 */
class CheckStaging {
  private static final Set<String> CHECKSUMS = Set.of("md5", "sha1", "sha256", "sha512");

  private final List<String> problems = new ArrayList<>();
  private final TreeMap<String, Element> poms = new TreeMap<>(); // by groupId:artifactId:version
  private int files;

  public static void main(String[] args) throws Exception {
    CheckStaging check = new CheckStaging();
    check.run(Path.of(args[0]), args.length > 1 && args[1].equals("signed"));
    check.problems.forEach(problem -> System.err.println("check-release: " + problem));
    System.out.println(
        "check-release: " + check.poms.keySet().size() + " artifacts of " + check.files + " files, "
            + (args.length > 1 ? "signed, " : "") + check.problems.size() + " problems");
    System.exit(check.problems.isEmpty() ? 0 : 1);
  }

  private void run(Path staging, boolean signed) throws Exception {
    List<Path> found;
    try (Stream<Path> walk = Files.walk(staging)) {
      found = walk.filter(Files::isRegularFile).filter(file -> !name(file).startsWith("maven-metadata")).sorted().toList();
    }
    for (Path file : found) {
      if (name(file).endsWith(".pom")) {
        Element pom = parse(file);
        poms.put(coordinates(pom), pom);
      }
    }
    if (poms.isEmpty()) {
      problems.add("nothing there: folder=" + staging);
    }
    for (Path file : found) {
      String extension = name(file).substring(name(file).lastIndexOf('.') + 1);
      if (CHECKSUMS.contains(extension)) {
        continue;
      }
      files++;
      if (extension.equals("asc")) {
        continue;
      }
      checksum(file, "md5", "MD5");
      checksum(file, "sha1", "SHA-1");
      if (signed) {
        need(sibling(file, name(file) + ".asc"), "no signature");
      }
      if (extension.equals("pom")) {
        pom(file);
      }
    }
    bom();
    tarball(found);
  }

  /** There is one, and a list of what is in it. */
  private void tarball(List<Path> found) {
    long tarballs = found.stream().filter(file -> name(file).endsWith(".tar.gz")).count();
    long poms = found.stream().filter(file -> name(file).matches("gradient-sync-\\d.*\\.pom")).count();
    long lists = found.stream().filter(file -> name(file).matches("gradient-sync-\\d.*-cyclonedx\\.json")).count();
    if (tarballs == 0 || tarballs != poms || tarballs != lists) {
      problems.add("not a pom and an SBOM for each tarball: tarballs=" + tarballs + ", poms=" + poms + ", SBOMs=" + lists);
    }
  }

  /** Each jar that is published is in the BOM. */
  private void bom() {
    Set<String> named = new TreeSet<>();
    Set<String> published = new TreeSet<>();
    for (Element pom : poms.values()) {
      Element management = child(pom, "dependencyManagement");
      if (!"pom".equals(text(pom, "packaging"))) {
        published.add(text(pom, "artifactId"));
      } else if (child(pom, "parent") == null && management != null && text(pom, "artifactId").endsWith("-bom")) {
        children(child(management, "dependencies")).forEach(dependency -> named.add(text(dependency, "artifactId")));
      }
    }
    if (!named.equals(published)) {
      problems.add("the BOM names " + named + ", and published are " + published);
    }
  }

  private void pom(Path file) throws Exception {
    Element pom = parse(file);
    // Each has its own: Maven inherits a description, too, but it would be the parent's.
    for (String own : List.of("name", "description")) {
      if (child(pom, own) == null) {
        problems.add("no <" + own + "> in " + name(file));
      }
    }
    for (String inherited :
        List.of("url", "licenses/license/name", "licenses/license/url", "developers/developer/name",
            "scm/connection", "scm/url")) {
      String value = value(pom, inherited);
      if (value == null || value.isBlank() || value.contains("${")) {
        problems.add("no <" + inherited + "> in " + name(file) + " or its parent: value=" + value);
      }
    }
    boolean release = !coordinates(pom).endsWith("-SNAPSHOT");
    if (release && (value(pom, "url") + value(pom, "scm/url") + value(pom, "scm/connection")).contains("unset.invalid")) {
      problems.add("an address that nobody has set, in " + name(file));
    }
    Element dependencies = child(pom, "dependencies");
    for (Element dependency : dependencies == null ? List.<Element>of() : children(dependencies)) {
      String version = managed(pom, dependency, "version");
      String scope = managed(pom, dependency, "scope");
      if (scope != null && Set.of("test", "provided").contains(scope)) {
        continue; // no user gets these
      }
      String what = text(dependency, "groupId") + ":" + text(dependency, "artifactId") + ":" + version;
      if (version == null || version.contains("${") || !Character.isDigit(version.charAt(0))
          || release && version.endsWith("-SNAPSHOT") || "system".equals(scope)) {
        problems.add("users of " + name(file) + " would need what is not published: " + what);
      }
      if (what.startsWith("org.gradientsync:") && !poms.containsKey(what)) {
        problems.add("users of " + name(file) + " would need what is not staged: " + what);
      }
    }
    if ("pom".equals(text(pom, "packaging"))) {
      return;
    }
    String base = name(file).substring(0, name(file).length() - ".pom".length());
    Path jar = sibling(file, base + ".jar");
    Path javadoc = sibling(file, base + "-javadoc.jar");
    need(jar, "no jar");
    need(sibling(file, base + "-sources.jar"), "no sources");
    need(javadoc, "no Javadoc");
    need(sibling(file, base + "-cyclonedx.json"), "no SBOM");
    if (Files.exists(jar) && Files.exists(javadoc)) {
      packages(jar, javadoc);
    }
  }

  /** The Javadoc has the packages that the module exports to everyone, and no other. */
  private void packages(Path jar, Path javadoc) throws IOException {
    Set<String> exported = new TreeSet<>();
    try (JarFile file = new JarFile(jar.toFile());
        InputStream in = file.getInputStream(file.getEntry("module-info.class"))) {
      for (ModuleDescriptor.Exports exports : ModuleDescriptor.read(in).exports()) {
        if (!exports.isQualified()) {
          exported.add(exports.source());
        }
      }
    }
    Set<String> documented = new TreeSet<>();
    try (JarFile file = new JarFile(javadoc.toFile());
        InputStream in = file.getInputStream(file.getEntry("element-list"))) {
      new String(in.readAllBytes()).lines().filter(line -> !line.startsWith("module:")).forEach(documented::add);
    }
    if (!documented.equals(exported)) {
      problems.add("the Javadoc of " + name(jar) + " has " + documented + ", and exported are " + exported);
    }
  }

  private void checksum(Path file, String extension, String algorithm) throws Exception {
    Path beside = sibling(file, name(file) + "." + extension);
    String sum = HexFormat.of().formatHex(MessageDigest.getInstance(algorithm).digest(Files.readAllBytes(file)));
    if (!Files.exists(beside) || !Files.readString(beside).strip().equals(sum)) {
      problems.add("no " + extension + " or a wrong one: " + file);
    }
  }

  private void need(Path file, String problem) throws IOException {
    if (!Files.exists(file) || Files.size(file) == 0) {
      problems.add(problem + ": " + file);
    }
  }

  /** A value by its path in a pom or its parent, with properties replaced. */
  private String value(Element pom, String path) {
    for (Element at = pom; at != null; at = parent(at)) {
      Element element = at;
      for (String step : path.split("/")) {
        element = element == null ? null : child(element, step);
      }
      if (element != null) {
        return resolve(pom, element.getTextContent());
      }
    }
    return null;
  }

  /** The version or the scope of a dependency: its own, or what the parents manage. */
  private String managed(Element pom, Element dependency, String what) {
    String own = text(dependency, what);
    for (Element at = pom; own == null && at != null; at = parent(at)) {
      Element management = child(at, "dependencyManagement");
      for (Element candidate : management == null ? List.<Element>of() : children(child(management, "dependencies"))) {
        boolean same = true;
        for (String key : List.of("groupId", "artifactId", "type", "classifier")) {
          same &= Objects.equals(text(candidate, key), text(dependency, key));
        }
        own = same ? text(candidate, what) : own;
      }
    }
    return own == null ? null : resolve(pom, own);
  }

  private String resolve(Element pom, String value) {
    Matcher matcher = Pattern.compile("\\$\\{([^}]+)}").matcher(value);
    StringBuilder result = new StringBuilder();
    while (matcher.find()) {
      String key = matcher.group(1);
      String found = key.equals("project.version") ? version(pom) : null;
      for (Element at = pom; found == null && at != null; at = parent(at)) {
        Element properties = child(at, "properties");
        found = properties == null ? null : text(properties, key);
      }
      matcher.appendReplacement(result, Matcher.quoteReplacement(found == null ? matcher.group() : found));
    }
    return matcher.appendTail(result).toString();
  }

  private Element parent(Element pom) {
    Element parent = child(pom, "parent");
    return parent == null ? null : poms.get(coordinates(parent));
  }

  private static String coordinates(Element pom) {
    Element parent = child(pom, "parent");
    String group = text(pom, "groupId");
    return (group == null ? text(parent, "groupId") : group) + ":" + text(pom, "artifactId") + ":" + version(pom);
  }

  private static String version(Element pom) {
    String own = text(pom, "version");
    return own == null ? text(child(pom, "parent"), "version") : own;
  }

  private static Element parse(Path file) throws Exception {
    return DocumentBuilderFactory.newInstance().newDocumentBuilder().parse(file.toFile()).getDocumentElement();
  }

  private static List<Element> children(Element element) {
    List<Element> result = new ArrayList<>();
    for (Node node = element.getFirstChild(); node != null; node = node.getNextSibling()) {
      if (node instanceof Element child) {
        result.add(child);
      }
    }
    return result;
  }

  private static Element child(Element element, String name) {
    return children(element).stream().filter(child -> child.getTagName().equals(name)).findFirst().orElse(null);
  }

  private static String text(Element element, String name) {
    Element child = child(element, name);
    return child == null ? null : child.getTextContent().strip();
  }

  private static String name(Path file) {
    return file.getFileName().toString();
  }

  private static Path sibling(Path file, String name) {
    return file.resolveSibling(name);
  }
}
