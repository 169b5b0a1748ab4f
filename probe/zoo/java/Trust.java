import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;

/** Makes the whole program trust the authority that SSL_CERT_FILE names. */
final class Trust {
    static void environment() throws Exception {
        String file = System.getenv("SSL_CERT_FILE");
        if (file == null) {
            return;
        }
        KeyStore store = KeyStore.getInstance("PKCS12");
        store.load(null, null);
        try (FileInputStream in = new FileInputStream(file)) {
            int n = 0;
            for (var c : CertificateFactory.getInstance("X.509").generateCertificates(in)) {
                store.setCertificateEntry("ca" + n++, c);
            }
        }
        Path path = Files.createTempFile("trust", ".p12");
        path.toFile().deleteOnExit();
        try (FileOutputStream out = new FileOutputStream(path.toFile())) {
            store.store(out, "changeit".toCharArray());
        }
        System.setProperty("javax.net.ssl.trustStore", path.toString());
        System.setProperty("javax.net.ssl.trustStorePassword", "changeit");
    }
}
