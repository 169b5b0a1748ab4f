import org.apache.http.client.methods.RequestBuilder;
import org.apache.http.entity.ContentType;
import org.apache.http.entity.StringEntity;
import org.apache.http.impl.client.HttpClients;
import org.apache.http.util.EntityUtils;

class ApacheHttpClient4 {
    public static void main(String[] args) throws Exception {
        Trust.environment();
        var request = RequestBuilder.create(args[1]).setUri(args[0]);
        if (!args[2].isEmpty()) {
            request.setEntity(new StringEntity(args[2], ContentType.APPLICATION_JSON));
        }
        try (var client = HttpClients.createDefault(); var response = client.execute(request.build())) {
            EntityUtils.consume(response.getEntity());
            System.exit(response.getStatusLine().getStatusCode() / 100 == 2 ? 0 : 1);
        }
    }
}
