import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;

class JavaNetHttp {
    public static void main(String[] args) throws Exception {
        Trust.environment();
        var body = args[2].isEmpty() ? BodyPublishers.noBody() : BodyPublishers.ofString(args[2]);
        var request = HttpRequest.newBuilder(URI.create(args[0])).method(args[1], body).build();
        int status = HttpClient.newHttpClient().send(request, BodyHandlers.ofString()).statusCode();
        System.exit(status / 100 == 2 ? 0 : 1);
    }
}
