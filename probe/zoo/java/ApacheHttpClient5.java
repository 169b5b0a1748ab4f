import org.apache.hc.client5.http.impl.classic.HttpClients;
import org.apache.hc.core5.http.ContentType;
import org.apache.hc.core5.http.io.entity.EntityUtils;
import org.apache.hc.core5.http.io.support.ClassicRequestBuilder;

class ApacheHttpClient5 {
    public static void main(String[] args) throws Exception {
        Trust.environment();
        var request = ClassicRequestBuilder.create(args[1]).setUri(args[0]);
        if (!args[2].isEmpty()) {
            request.setEntity(args[2], ContentType.APPLICATION_JSON);
        }
        try (var client = HttpClients.createDefault()) {
            int status = client.execute(request.build(), response -> {
                EntityUtils.consume(response.getEntity());
                return response.getCode();
            });
            System.exit(status / 100 == 2 ? 0 : 1);
        }
    }
}
