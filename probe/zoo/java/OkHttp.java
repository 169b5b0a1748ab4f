import okhttp3.MediaType;
import okhttp3.OkHttpClient;
import okhttp3.Request;
import okhttp3.RequestBody;

class OkHttp {
    public static void main(String[] args) throws Exception {
        Trust.environment();
        var body = args[2].isEmpty() ? null : RequestBody.create(MediaType.get("application/json"), args[2]);
        var request = new Request.Builder().url(args[0]).method(args[1], body).build();
        try (var response = new OkHttpClient().newCall(request).execute()) {
            response.body().bytes();
            System.exit(response.isSuccessful() ? 0 : 1);
        }
    }
}
