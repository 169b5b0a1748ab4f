import java.net.HttpURLConnection;
import java.net.URI;
import java.nio.charset.StandardCharsets;

class UrlConnection {
    public static void main(String[] args) throws Exception {
        Trust.environment();
        var connection = (HttpURLConnection) URI.create(args[0]).toURL().openConnection();
        connection.setRequestMethod(args[1]);
        if (!args[2].isEmpty()) {
            connection.setDoOutput(true);
            connection.getOutputStream().write(args[2].getBytes(StandardCharsets.UTF_8));
        }
        int status = connection.getResponseCode();
        if (status / 100 == 2) {
            connection.getInputStream().readAllBytes();
        }
        System.exit(status / 100 == 2 ? 0 : 1);
    }
}
