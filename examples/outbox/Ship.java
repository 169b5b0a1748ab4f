// Ships an order and sends its message in one transaction, with JDBC: see docs/guides/outbox-postgresql.md.
import java.sql.*;

public class Ship {
    public static void main(String[] args) throws SQLException {
        try (Connection conn = DriverManager.getConnection(System.getenv("JDBC_URL"))) {
            conn.setAutoCommit(false);
            try (PreparedStatement order = conn.prepareStatement("UPDATE orders SET shipped = 1 WHERE id = ?");
                 PreparedStatement send = conn.prepareStatement("SELECT forbear_send('order.shipped', ?, endpoint => ?, message_id => ?)")) {
                order.setInt(1, 23);
                order.executeUpdate();
                send.setString(1, "{\"order\":23,\"note\":\"a \\\"quoted\\\" word\"}");
                send.setString(2, "acme");
                send.setString(3, "order-23-shipped");
                send.execute();
            }
            conn.commit();
        }
    }
}
